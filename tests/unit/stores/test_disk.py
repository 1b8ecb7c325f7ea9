"""A disk without room: called that, nothing is lost, and what does not pass by itself is not waited for."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.engine.failure import failures
from headwater.errors import DiskFull, SinkRefused, SinkUnavailable
from headwater.log.embedded.state_store import StateStore
from headwater.pipeline.node import ViewNode
from headwater.sinks import Batch, parquet
from headwater.sinks.parquet import ParquetSink
from headwater.stores import disk
from headwater.stores.sqlite.connection import Writer
from headwater.views import ViewStore

NODE = ViewNode(name="totals", file="shop.py", line=1)


def rows(count: int) -> pa.Table:
    return pa.table({"id": list(range(count)), "text": [os.urandom(500).hex() for _ in range(count)]})


def on_a_small_disk(run: Callable[[], object], bytes: int) -> str:
    """Run in a child that may write no file larger than this; return what it raised, as text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, bytes))
        try:
            run()
        except Exception as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading) as told:
        return told.read()


def test_a_view_store_says_that_it_is_full_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with ViewStore(tmp_path / "views.db") as store:
        sink = store.sink("totals", "id BIGINT, text STRING", "id")
        sink.begin()
        sink.commit(Batch(0, rows(1)))
        (pages,) = store._writer._db.execute("PRAGMA page_count").fetchone()
        store._writer._db.execute(f"PRAGMA max_page_count={pages + 5}")
        with pytest.raises(DiskFull, match="the disk is full"):
            sink.commit(Batch(1, rows(1000)))
        assert store["totals"].count() == 1
        store._writer._db.execute("PRAGMA max_page_count=1000000")
        assert sink.commit(Batch(1, rows(1000)))
        assert store["totals"].count() == 1000


def test_parquet_files_that_find_no_room_leave_the_rest_whole(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, "id BIGINT, text STRING")
    sink.begin()
    sink.commit(Batch(0, rows(1)))
    told = on_a_small_disk(lambda: sink.commit(Batch(1, rows(1000))), 100_000)
    assert told.startswith("DiskFull") and "the disk is full" in told
    assert parquet.read(tmp_path).num_rows == 1
    assert sink.commit(Batch(1, rows(1000)))
    assert parquet.read(tmp_path).num_rows == 1001


def test_the_groups_of_a_log_say_what_is_wrong_with_the_disk(tmp_path: Path) -> None:
    state = StateStore(tmp_path / "groups.db")
    (pages,) = state._db.execute("PRAGMA page_count").fetchone()
    state._db.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(Exception, match="full") as caught, state.transaction() as db:
        for number in range(10_000):
            db.execute("INSERT INTO epochs VALUES (?, 'p', 1)", (f"topic {number}",))
    assert "rollback" not in str(caught.value)


def test_a_full_disk_under_the_state_is_no_fault_of_the_code() -> None:
    error = failures.error_from_exception(NODE, OSError(errno.ENOSPC, "No space left on device"))
    assert isinstance(error, DiskFull) and 'the state of view "totals"' in str(error)
    worker = (
        "Traceback (most recent call last):\n  File x\nOSError: [Errno 28] No space left on device: '/s'\n"
    )
    told = failures.error_from_exception(NODE, RuntimeError(f"Job aborted\n{worker}\tat org.apache.spark"))
    assert isinstance(told, DiskFull) and told.detail == "OSError: [Errno 28] No space left on device: '/s'"


@pytest.mark.parametrize(
    "text",
    [
        "Job aborted: Lost task 0.0 in stage 1.0 (TID 1) (host executor 1): java.io.IOException: "
        "No space left on device\n\tat java.base",
        "An error occurred while calling o1.close.\n: java.io.IOException: No space left on device",
        "x\nCaused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device",
        "java.nio.file.FileSystemException: /tmp/a: No space left on device",
        "Traceback (most recent call last):\nsqlite3.OperationalError: database or disk is full",
    ],
)
def test_a_full_disk_is_known_by_what_spark_tells_of_it(text: str) -> None:
    assert disk.is_full(RuntimeError(text))


@pytest.mark.parametrize(
    "text",
    [
        'The value \'No space left on device\' of the type "STRING" cannot be cast to "INT"',
        "The value 'OSError: [Errno 28] No space left on device' of the type \"STRING\" cannot be cast",
        "Traceback (most recent call last):\n  File x\nValueError: a line says: database or disk is full",
        "Traceback (most recent call last):\n  File x\nValueError: line 3: OSError: Disk quota exceeded",
    ],
)
def test_a_record_that_speaks_of_a_full_disk_is_none(text: str) -> None:
    assert not disk.is_full(RuntimeError(text))
    assert not isinstance(failures.error_from_exception(NODE, RuntimeError(text)), DiskFull)


@given(st.sampled_from(sorted(errno.errorcode)))
def test_only_what_may_pass_by_itself_is_waited_for(number: int) -> None:
    error = disk.sink_error(OSError(number, os.strerror(number)), "directory")
    waits = {"EAGAIN", "EBUSY", "EINTR", "EIO", "EMFILE", "ENFILE", "ENOLCK", "ENOMEM", "ENOTCONN", "ESTALE",
             "ETIMEDOUT", "ENOSPC", "EDQUOT", "EFBIG", "EWOULDBLOCK"}  # fmt: skip
    assert isinstance(error, SinkRefused) == (errno.errorcode[number] not in waits)


def test_what_sqlite_refuses_for_good_is_not_waited_for(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "views.db", "os")
    with pytest.raises(SinkRefused, match="no such table"), writer.transaction() as db:
        db.execute("SELECT * FROM nowhere")
    other = Writer(tmp_path / "views.db", "os")
    other._db.execute("PRAGMA busy_timeout=0")
    with pytest.raises(SinkUnavailable, match="locked") as caught, writer.transaction(), other.transaction():
        pass
    assert not isinstance(caught.value, SinkRefused)
