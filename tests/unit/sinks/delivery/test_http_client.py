"""Requests over HTTP: connections that are kept, URLs that are refused."""

from __future__ import annotations

import re

import pytest

from delivery_kit import Answer, receiving
from headwater.errors import UsageError
from headwater.sinks.delivery.http_client import HttpClient, http_url


def test_a_connection_is_used_again_and_made_anew_when_it_has_gone() -> None:
    with receiving() as receiver, HttpClient() as client:
        for _ in range(2):
            assert client.post(receiver.url + "?a=1", b"x", {}).status == 204
        (kept,) = next(iter(client._idle.values()))
        assert kept.sock is not None
        kept.sock.shutdown(2)
        assert client.post(receiver.url, b"x", {}).status == 204
        receiver.answer = lambda request: Answer(302, {"Location": "http://127.0.0.1:1/", "Retry-After": "7"})
        answer = client.post(receiver.url, b"x", {})
        assert (answer.status, answer.retry_after) == (302, 7.0)  # and it is not followed


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("99999999", 86_400.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0), ("soon", None)],
)
def test_how_long_to_wait_is_read_as_seconds_or_as_a_date(text: str, seconds: float | None) -> None:
    with receiving() as receiver, HttpClient() as client:
        receiver.answer = lambda request: Answer(429, {"Retry-After": text})
        assert client.post(receiver.url, b"x", {}).retry_after == seconds


@pytest.mark.parametrize(
    "url",
    [
        "shop.example",
        "ftp://a/b",
        "https://",
        "https://a:port/",
        "https://u:p@a/",
        "https://a/\r\nX: y",
        "https://ä/",
    ],
)
def test_a_url_that_cannot_be_meant_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UsageError) as told:
        http_url(url, "webhook")
    assert not re.search(re.escape(url), str(told.value)) or url == "https://"
