"""A capture that goes on by itself."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest

import headwater
from changes_kit import CAPTURED, newest
from headwater.capture import worker
from headwater.capture.capture import Capture
from headwater.capture.opening import open_capture
from headwater.capture.worker import CaptureWorker
from headwater.errors import LogUnavailable, SourceRefused


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
