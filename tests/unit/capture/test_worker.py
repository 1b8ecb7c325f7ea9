"""A capture that goes on by itself."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import headwater
from changes_kit import CAPTURED, execute, newest
from headwater.api.background import Background
from headwater.capture import capture as captures
from headwater.capture import worker
from headwater.capture.capture import Capture
from headwater.capture.opening import open_capture
from headwater.capture.settings import CaptureSettings
from headwater.capture.sqlite.source import SqliteSource
from headwater.capture.state import load
from headwater.capture.worker import CaptureWorker
from headwater.errors import (
    Fenced,
    HeadwaterError,
    LogUnavailable,
    SourceRefused,
    SourceUnavailable,
    UsageError,
)


@pytest.fixture
def database(tmp_path: Path) -> str:
    db = sqlite3.connect(tmp_path / "crm.db")
    with db:
        db.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
        db.execute("INSERT INTO customers VALUES (1, 'a')")
    db.close()
    return f"sqlite:{tmp_path / 'crm.db'}"


def test_it_waits_for_what_is_away_and_says_so(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "SHORTEST", 0.01)
    log, stop, tried = f"file:{tmp_path / 'log'}", threading.Event(), list[str]()

    def make() -> Capture:
        tried.append(work.status().state)
        if len(tried) < 3:
            raise LogUnavailable("the log is away")
        return open_capture(database, log, "crm", [CAPTURED])

    work = CaptureWorker("crm", make)
    thread = threading.Thread(target=work.run, args=(stop,), daemon=True)
    thread.start()
    while work.status().state != "streaming":
        assert thread.is_alive()
        time.sleep(0.01)
    status = work.status()
    assert (status.snapshots["customers"].rows, status.error) == (1, None)
    stop.set()
    thread.join()
    assert tried == ["starting", "waiting", "waiting"]
    assert work.status().state == "ended"
    with headwater.open(log) as opened:
        assert newest(opened) == {1: "a"}


def test_what_waiting_does_not_mend_ends_it(database: str) -> None:
    def make() -> Capture:
        raise SourceRefused("no")

    work = CaptureWorker("crm", make)
    with pytest.raises(SourceRefused):
        work.run(threading.Event())
    status = work.status()
    assert (status.state, str(status.error), status.to_dict()["capture"]) == ("broken", "no", "crm")


def test_it_catches_up_once(database: str, tmp_path: Path) -> None:
    work = CaptureWorker("crm", lambda: open_capture(database, f"file:{tmp_path / 'log'}", "crm", [CAPTURED]))
    work.catch_up()
    assert work.status().state == "ended"
    assert work.status().to_dict()["snapshots"]["customers"] == {"after": [1], "rows": 1, "done": True}


@pytest.mark.slow
def test_why_it_waits_is_noted_for_others_and_forgotten_when_it_goes_on(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "SHORTEST", 0.3)
    monkeypatch.setattr(captures, "WATCH_SECONDS", 0.0)
    log, stop = f"file:{tmp_path / 'log'}", threading.Event()
    work = CaptureWorker("crm", lambda: open_capture(database, log, "crm", [CAPTURED]))
    thread = threading.Thread(target=work.run, args=(stop,), daemon=True)
    thread.start()
    told = states(log)
    assert next(told) == ("streaming", None)
    with monkeypatch.context() as away:
        away.setattr(SqliteSource, "retained", refused)
        assert next(told) == ("waiting", "the database is away")
    assert next(told) == ("streaming", None)
    stop.set()
    thread.join()
    assert next(told) == ("ended", None)


def refused(_: SqliteSource) -> int:
    raise SourceUnavailable("the database is away")


def states(log: str) -> Iterator[tuple[str, str | None]]:
    """Yield how a capture is doing whenever that has become another."""
    last, deadline = None, time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(UsageError), headwater.open(log) as opened:
            status = load(opened, "crm")
            if status is None or status.figures.state in ("starting", "snapshot"):
                continue
            now = status.figures.state, status.figures.error
            if now != last:
                last = now
                yield now
    raise AssertionError(last)


def test_the_database_is_watched_and_a_warning_is_in_the_status(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteSource, "retained", lambda _: 100)
    settings = CaptureSettings(max_retained=150)
    log = f"file:{tmp_path / 'log'}"
    work = CaptureWorker("crm", lambda: open_capture(database, log, "crm", [CAPTURED], settings))
    work.catch_up()
    assert work.status().retained == 100
    assert work.status().alert is not None and "more than 75" in work.status().alert


@pytest.mark.slow
def test_one_that_another_has_taken_over_from_says_so(database: str, tmp_path: Path) -> None:
    log = f"file:{tmp_path / 'log'}"
    first, second = (
        CaptureWorker("crm", lambda: open_capture(database, log, "crm", [CAPTURED])) for _ in range(2)
    )
    stop = threading.Event()
    ended = Background(lambda: first.run(stop))
    while first.status().state != "streaming":
        assert not ended.ended(0.01)
    second.catch_up()
    with pytest.raises(Fenced, match='another capture named "crm" has taken over'):
        ended.result()
    assert first.status().state == "broken"
    assert second.status().state == "ended"


def test_one_that_cannot_write_its_topic_does_not_fence_another(database: str, tmp_path: Path) -> None:
    log = f"file:{tmp_path / 'log'}"
    with open_capture(database, log, "crm", [CAPTURED]) as capture:
        capture.catch_up()
        other = replace(CAPTURED, schema=headwater.schema.read("id BIGINT"))
        with pytest.raises(HeadwaterError, match="is not what table"):
            open_capture(database, log, "crm", [other])
        capture.catch_up()


def test_one_that_was_well_for_a_while_is_begun_anew_soon(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "SHORTEST", 0.01)
    monkeypatch.setattr(worker, "LONGEST", 0.01 * 2**6)
    pauses, stop, attempts = list[float](), threading.Event(), list[int]()
    monkeypatch.setattr(stop, "wait", lambda pause: pauses.append(pause))

    def make() -> Capture:
        attempts.append(1)
        monkeypatch.setattr(worker, "STEADY", -1.0 if len(attempts) == 5 else 60.0)
        if len(attempts) == 7:
            stop.set()
        raise SourceUnavailable("away")

    CaptureWorker("crm", make).run(stop)
    assert pauses == [0.01, 0.02, 0.04, 0.08, 0.01, 0.02, 0.04]


def test_who_may_not_ask_what_is_kept_does_without_unless_there_is_a_limit(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(_: SqliteSource) -> int:
        raise SourceRefused("no right to ask")

    monkeypatch.setattr(SqliteSource, "retained", forbidden)
    log = f"file:{tmp_path / 'log'}"
    work = CaptureWorker("crm", lambda: open_capture(database, log, "crm", [CAPTURED]))
    work.catch_up()
    assert work.status().retained is None
    execute(Path(database.removeprefix("sqlite:")), "INSERT INTO customers VALUES (2, 'b')")
    limited = CaptureSettings(alert_retained=1)
    with pytest.raises(SourceRefused, match="no right to ask"):
        CaptureWorker("crm", lambda: open_capture(database, log, "crm", [CAPTURED], limited)).catch_up()
