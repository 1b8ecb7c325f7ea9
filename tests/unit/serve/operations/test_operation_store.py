"""Operations are kept, a bounded number, across restarts; one whose server is gone has failed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from headwater.serve.operations.operation_store import MOST, OperationRecord, OperationStore

WRITER = """
import os, sys
from pathlib import Path
from headwater.serve.operations.operation_store import OperationRecord, OperationStore
OperationStore(Path(sys.argv[1])).add(OperationRecord("of-the-dead", "verify", "shop/seen"))
os.kill(os.getpid(), 9)
"""


def test_what_has_come_of_an_operation_is_there_after_a_restart(tmp_path: Path) -> None:
    record = OperationRecord("one", "verify", "shop/seen", started=5.0)
    with OperationStore(tmp_path) as store:
        store.add(record)
        assert store.get("one") == record
        store.update(replace(record, state="done", result={"ok": True}, ended=6.0))
    with OperationStore(tmp_path) as store:
        [found] = store.all()
    assert (found.state, found.result, found.to_dict()["ended"]) == (
        *("done", {"ok": True}),
        "1970-01-01T00:00:06Z",
    )


def test_an_operation_whose_server_was_killed_has_failed(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", WRITER, str(tmp_path)], check=False)
    with OperationStore(tmp_path) as store:
        found = store.get("of-the-dead")
    assert found is not None and found.state == "failed"
    assert found.error is not None and found.error["message"] == "the server ended before it did"


def test_only_the_last_ones_are_kept() -> None:
    with OperationStore(None) as store:
        for number in range(MOST + 5):
            store.add(OperationRecord(str(number), "verify", "shop/seen"))
        assert [each.id for each in store.all()] == [str(n) for n in reversed(range(5, MOST + 5))]
        assert store.get("0") is None
