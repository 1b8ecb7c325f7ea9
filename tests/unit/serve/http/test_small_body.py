"""Small JSON objects, and what is none."""

from __future__ import annotations

import pytest
from starlette.requests import Request
from starlette.types import Message

from headwater.serve.http.problem import HttpProblem
from headwater.serve.http.small_body import BODY_BYTES, json_object
from push_kit import run_async


def request_of(*parts: bytes) -> Request:
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    waiting.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        return waiting.pop(0)

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


def test_an_object_is_read_in_parts() -> None:
    assert run_async(json_object(request_of(b'{"to":', b'"latest"}'), "")) == {"to": "latest"}


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 400), (b"[]", 400), (b"{", 400), (b"\xff", 400), (b"null", 400), (b" " * (BODY_BYTES + 1), 413)],
)
def test_what_is_none_is_refused(body: bytes, status: int) -> None:
    with pytest.raises(HttpProblem) as refused:
        run_async(json_object(request_of(body, b"never read"), "send {}"))
    assert refused.value.status == status
