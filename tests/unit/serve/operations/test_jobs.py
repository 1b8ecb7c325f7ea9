"""Operations at work: results, errors, limits, and an end when the server ends. Children are stand-ins."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator

import pytest

from headwater import Pipeline
from headwater.errors import UsageError
from headwater.liveness import may_be_alive
from headwater.serve.http.problem import HttpProblem
from headwater.serve.operations.jobs import Jobs, SparkWork
from headwater.serve.operations.operation_store import OperationRecord, OperationStore

ECHO = (
    "import json; asked = json.loads(input()); print(json.dumps({'result': [asked['kind'], asked['node']]}))"
)
FAIL = 'input(); print(\'{"error": {"message": "no", "detail": null, "hint": "do"}}\')'
SLEEP = "import os, sys, time; input(); time.sleep(60)"


@pytest.fixture
def store() -> Iterator[OperationStore]:
    with OperationStore(None) as store:
        yield store


def jobs(store: OperationStore, code: str) -> Jobs:
    return Jobs(store, (sys.executable, "-S", "-c", code))


def ended(store: OperationStore, id: str) -> OperationRecord:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = store.get(id)
        if found is not None and found.state != "running":
            return found
        time.sleep(0.01)
    raise AssertionError("it has not ended")


def work(name: str = "shop") -> SparkWork:
    return SparkWork("verify", Pipeline(name), "seen", progress=lambda: 0.5)


def test_a_child_is_asked_and_its_answer_is_the_result(store: OperationStore) -> None:
    found = ended(store, jobs(store, ECHO).spawn(work(), "verifying"))
    assert (found.state, found.result, found.progress) == ("done", ["verify", "seen"], 1.0)
    assert (found.target, found.message) == ("shop/seen", "verifying")


def test_the_error_of_a_child_is_told_with_its_hint(store: OperationStore) -> None:
    found = ended(store, jobs(store, FAIL).spawn(work(), ""))
    assert (found.state, found.error) == ("failed", {"message": "no", "detail": None, "hint": "do"})


def test_a_child_that_ends_without_an_answer_has_failed(store: OperationStore) -> None:
    found = ended(store, jobs(store, "input(); raise SystemExit(3)").spawn(work(), ""))
    assert found.error is not None and found.error["detail"] == "exit code 3"


def test_what_a_child_without_an_answer_printed_is_in_the_log_and_not_in_the_error(
    store: OperationStore, caplog: pytest.LogCaptureFixture
) -> None:
    found = ended(store, jobs(store, "input(); raise SystemExit('no Java at /srv/jdk')").spawn(work(), ""))
    assert "no Java at /srv/jdk" in caplog.text and "shop/seen" in caplog.text
    assert found.error is not None and "/srv/jdk" not in str(found.error)


def test_a_child_that_tells_too_much_has_failed_and_is_gone(store: OperationStore) -> None:
    found = ended(store, jobs(store, "input(); print('x' * 3_000_000)").spawn(work(), ""))
    assert found.state == "failed"


def test_a_pipeline_has_one_child_at_a_time_and_the_server_a_few(store: OperationStore) -> None:
    with jobs(OperationStore(None), SLEEP) as busy:
        busy.spawn(work(), "")
        with pytest.raises(HttpProblem) as second:
            busy.spawn(work(), "")
        busy.spawn(work("other"), "")
        with pytest.raises(HttpProblem) as third:
            busy.spawn(work("more"), "")
    assert (second.value.status, third.value.status) == (409, 429)


def test_children_are_stopped_when_the_server_stops_and_nothing_begins_then(store: OperationStore) -> None:
    busy = jobs(store, SLEEP)
    id = busy.spawn(work(), "")
    deadline = time.monotonic() + 120
    while busy._children.get("shop") is None and time.monotonic() < deadline:
        time.sleep(0.01)
    child = busy._children["shop"]
    assert child is not None
    busy.stop()
    assert not may_be_alive(socket.gethostname(), child.pid)
    assert ended(store, id).state == "failed"
    with pytest.raises(HttpProblem, match="being stopped"):
        busy.run("seek", "a/b", lambda: None, "")


def test_what_is_done_here_has_a_result_or_an_error(store: OperationStore) -> None:
    def refuse() -> None:
        raise UsageError("no such place", hint="there is another")

    busy = jobs(store, ECHO)
    assert ended(store, busy.run("redrive", "shop/seen", lambda: {"records": 3}, "")).result == {"records": 3}
    failed = ended(store, busy.run("seek", "orders/billing", refuse, ""))
    assert failed.error == {"message": "no such place", "detail": None, "hint": "there is another"}
