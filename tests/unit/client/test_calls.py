"""Calls and answers, without a connection."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from headwater.client import calls
from headwater.errors import Behind, RowError, UnknownView


def test_a_send_carries_its_values_as_the_log_reads_them_and_a_key_of_its_own() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    call = calls.send("a/b", {"at": at, "d": Decimal("1.50"), "b": b"\0"}, None)
    assert call.path == "/v1/topics/a%2Fb"
    assert json.loads(call.body or b"") == [{"at": "2026-01-01T00:00:00Z", "d": "1.50", "b": "AA=="}]
    assert call.headers["Idempotency-Key"] != calls.send("a", {}, None).headers["Idempotency-Key"]


def test_a_read_waits_for_what_was_sent() -> None:
    sent = calls.sent(200, {}, b'{"position":"orders:0=1","rows":1}')
    assert ("after", "orders:0=1") in calls.get("totals", ("a", True), sent).params
    with pytest.raises(Behind, match="not yet"):
        calls.row(504, b'{"title":"not yet","status":504}')


def test_the_last_id_comes_before_where_it_began() -> None:
    request = calls.FollowRequest(calls.follow_view("totals"), key=("a", 1), where={"n": 2}, since=5)
    assert request.call(None).headers["Last-Event-ID"] == "5"
    assert request.call("9").headers["Last-Event-ID"] == "9"
    assert request.call(None).params == (("key", "a"), ("key", "1"), ("where", "n:2"))


def test_a_binary_key_is_base64_as_its_values_are() -> None:
    assert calls.get("files", b"\x00\xff", None).params == (("key", "AP8="),)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_has_not_is_refused_and_not_sent_as_null(number: float) -> None:
    for row in ({"id": 1, "rate": number}, {"id": 1, "rates": [{"of": (number,)}]}):
        with pytest.raises(RowError, match="NaN or infinite") as refused:
            calls.send("t", [{"id": None}, row], None)
        assert refused.value.row == 1
    assert calls.send("t", {"rate": "NaN", "id": None}, None).body == b'[{"rate":"NaN","id":null}]'


def test_a_row_that_is_not_there_is_none_and_a_view_that_is_not_is_an_error() -> None:
    assert calls.row(404, b'{"title":"nothing","kind":"no_row"}') is None
    with pytest.raises(UnknownView):
        calls.row(404, b'{"title":"no view \\"has no row\\"","kind":"unknown_view"}')
