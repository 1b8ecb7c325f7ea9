"""Errors as problem documents: the right status, and nothing that is not theirs to know."""

from __future__ import annotations

import orjson
import pytest

from headwater import errors
from headwater.serve.http.problem import HttpProblem, problem_response, status_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.UnknownTopic("no"), 404), (errors.RowError("no"), 422), (errors.RecordTooLarge("no"), 413),
        (errors.BufferFull("no"), 429), (errors.UsageError("no"), 400), (errors.LogUnavailable("no"), 503),
        (errors.HeadwaterError("no"), 500), (HttpProblem(418, "no"), 418),
    ],
)  # fmt: skip
def test_each_kind_has_its_status(error: errors.HeadwaterError, status: int) -> None:
    assert status_of(error) == status


def test_a_row_and_a_column_at_fault_are_told() -> None:
    answer = problem_response(errors.RowError("no", detail="why", row=3, column="id"))
    assert orjson.loads(answer.body) == {
        "type": "about:blank", "title": "no", "status": 422, "detail": "row 3: why", "row": 3, "column": "id",
    }  # fmt: skip


def test_what_names_files_is_kept_from_strangers(caplog: pytest.LogCaptureFixture) -> None:
    answer = problem_response(errors.LogUnavailable("cannot open /srv/secret", detail="/srv/secret"))
    assert b"secret" not in bytes(answer.body) and "/srv/secret" in caplog.text
    assert answer.headers["retry-after"] == "1"


def test_who_has_no_token_is_told_how_to_show_one() -> None:
    assert problem_response(HttpProblem(401, "no", challenge=True)).headers["www-authenticate"] == "Bearer"
