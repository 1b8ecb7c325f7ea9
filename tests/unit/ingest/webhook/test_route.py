"""A webhook over HTTP: right answers, and nothing written where it is refused."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest

import headwater
from headwater import Log, ingest
from headwater.errors import LogUnavailable
from headwater.ingest import BackgroundIngest, WebhookSettings
from headwater.ingest.webhook.deliveries import Deliveries
from headwater.ingest.webhook.receiver import BODY_BYTES
from webhook_kit import SECRET, post, signed


@pytest.fixture(scope="module")
def log() -> Iterator[Log]:
    with headwater.open("memory:") as opened:
        yield opened


@pytest.fixture(scope="module")
def hook(log: Log, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundIngest]:
    secret = tmp_path_factory.mktemp("secret") / "hook"
    secret.write_text(SECRET)
    settings = WebhookSettings(f"file:{secret}", listen="127.0.0.1:0")
    with BackgroundIngest(ingest.open_webhook("billing", "hooks", log=log, settings=settings)) as work:
        yield work


def stored(log: Log) -> int:
    return sum(log.resolve("hooks", "latest").offsets.values())


def test_a_delivery_is_stored_before_it_is_answered_and_its_repeat_is_not(
    log: Log, hook: BackgroundIngest
) -> None:
    before, body = stored(log), b'{"type": "paid"}'
    first = post(hook.address, body, signed("a", body))
    assert (first.status, first.body["duplicate"]) == (200, False)
    assert stored(log) == before + 1
    again = post(hook.address, body, signed("a", body))
    assert (again.status, again.body["duplicate"]) == (200, True)
    assert stored(log) == before + 1


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{}", {}, 400),
        (b"{}", signed("b", b"[]"), 401),
        (b"{}", signed("b", b"{}", 1), 401),
        (b"{", signed("b", b"{"), 400),
        (b"x" * (BODY_BYTES + 1), {}, 413),
        (b"{}", {"Webhook-Id": "b", "Webhook-Timestamp": "soon", "Webhook-Signature": "v1,x"}, 401),
    ],
)
def test_what_is_refused_is_a_problem_document_and_is_not_written(
    log: Log, hook: BackgroundIngest, body: bytes, headers: dict[str, str], status: int
) -> None:
    before, refused = stored(log), hook.status().counts.get("refused", 0)
    answer = post(hook.address, body, headers)
    assert (answer.status, answer.type, answer.body["status"]) == (status, "application/problem+json", status)
    assert SECRET not in str(answer.body)
    assert stored(log) == before
    assert hook.status().counts["refused"] == refused + 1


def test_a_body_without_a_length_is_read_no_further_than_its_limit(log: Log, hook: BackgroundIngest) -> None:
    host, _, path = hook.address.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=30)
    before = stored(log)
    pieces = (b"x" * 100_000 for _ in range(BODY_BYTES // 100_000 + 2))
    try:
        connection.request("POST", f"/{path}", pieces, {"Transfer-Encoding": "chunked"}, encode_chunked=True)
        assert connection.getresponse().status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # it was refused while it was still being sent
    finally:
        connection.close()
    assert stored(log) == before


@pytest.mark.parametrize(("path", "method", "status"), [("/other", "POST", 404), ("", "GET", 405)])
def test_other_paths_and_methods_are_problems_too(
    hook: BackgroundIngest, path: str, method: str, status: int
) -> None:
    answer = post(hook.address + path, b"", {}, method)
    assert (answer.status, answer.type) == (status, "application/problem+json")


def test_a_log_that_is_away_is_told_with_when_to_come_again(
    hook: BackgroundIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_deliveries: Deliveries, _delivery: object) -> None:
        raise LogUnavailable("the disk of /secret/directory is full")

    monkeypatch.setattr(Deliveries, "add", away)
    answer = post(hook.address, b"{}", signed("c", b"{}"))
    assert (answer.status, answer.type) == (503, "application/problem+json")
    assert "secret" not in str(answer.body)
