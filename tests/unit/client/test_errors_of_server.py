"""Problem documents become typed errors."""

from __future__ import annotations

import pytest

from headwater import errors
from headwater.client.errors_of_server import RequestRefused, is_no_row, server_error
from headwater.errors import HeadwaterError


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, errors.UsageError), (422, errors.RowError), (429, errors.BufferFull), (410, errors.OffsetLost),
     (503, errors.LogUnavailable), (504, errors.Behind), (401, RequestRefused), (500, RequestRefused)],
)  # fmt: skip
def test_a_status_is_a_kind_of_error(status: int, kind: type[HeadwaterError]) -> None:
    error = server_error(status, b'{"title":"no","detail":"d","hint":"h","row":1}')
    assert type(error) is kind and error.message == "no" and error.hint == "h"


def test_an_answer_that_is_no_document_is_told_by_its_status() -> None:
    assert "502" in server_error(502, b"<html>").message


def test_what_is_not_there_is_told_apart_by_its_kind_and_not_by_its_text() -> None:
    assert type(server_error(404, b'{"title":"x","kind":"unknown_view"}')) is errors.UnknownView
    assert type(server_error(404, b'{"title":"x","kind":"unknown_topic"}')) is errors.UnknownTopic
    assert is_no_row(404, b'{"title":"x","kind":"no_row"}')
    assert not is_no_row(404, b'{"title":"no view \\"has no row\\"","kind":"unknown_view"}')
