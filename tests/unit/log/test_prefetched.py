"""Records in local files: found by their offsets, whole or not at all. No broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.log import prefetched
from headwater.log.prefetched import PrefetchFolder, Span

SPAN = Span("orders", "t1", 0, 0, 0)


def batch(*offsets: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(offsets, pa.int64()), "_offset": pa.array(offsets, pa.int64())})


def found(root: Path, start: int, end: int, *, partition: int = 0, id: str = "t1") -> list[int] | None:
    batches = prefetched.read(root, SPAN._replace(start=start, end=end, partition=partition, id=id))
    return None if batches is None else [n for each in batches for n in each.column("n").to_pylist()]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[PrefetchFolder]:
    folder = PrefetchFolder(tmp_path, "t1")
    folder.add(0, 0, 4, batch(0, 1, 3))  # the offset 2 is a marker of a transaction
    folder.add(0, 4, 8, batch(4, 5, 6, 7))
    folder.add(0, 9, 10, batch(9))
    yield folder
    folder.close()


@pytest.mark.parametrize(
    ("start", "end", "offsets"),
    [(0, 8, [0, 1, 3, 4, 5, 6, 7]), (1, 6, [1, 3, 4, 5]), (2, 3, []), (9, 10, [9]), (3, 3, [])],
)
def test_what_is_there_is_found_between_any_offsets(
    folder: PrefetchFolder, tmp_path: Path, start: int, end: int, offsets: Sequence[int]
) -> None:
    assert found(tmp_path, start, end) == offsets


@pytest.mark.parametrize(("start", "end"), [(0, 9), (7, 10), (9, 11), (8, 9)])
def test_where_there_is_a_hole_nothing_is_given(
    folder: PrefetchFolder, tmp_path: Path, start: int, end: int
) -> None:
    assert found(tmp_path, start, end) is None


def test_other_partitions_and_other_topics_of_that_name_are_not_there(
    folder: PrefetchFolder, tmp_path: Path
) -> None:
    folder.add(10, 0, 4, batch(0))
    assert found(tmp_path, 0, 4, partition=1) is None
    assert found(tmp_path, 0, 4, id="t2") is None


def test_files_that_are_no_longer_needed_go(folder: PrefetchFolder, tmp_path: Path) -> None:
    folder.remove(0, before=7)
    assert found(tmp_path, 0, 4) is None
    assert found(tmp_path, 4, 8) == [4, 5, 6, 7]
    folder.close()
    assert found(tmp_path, 4, 8) is None


@pytest.mark.slow
def test_a_folder_goes_when_the_next_process_reads_ahead_and_its_own_is_gone(tmp_path: Path) -> None:
    code = "import os,pathlib,sys; from headwater.log.prefetched import PrefetchFolder as F; "
    code += "F(pathlib.Path(sys.argv[1]), 't1'); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=os.environ, check=False)
    assert len(list((tmp_path / "t1").iterdir())) == 1
    first, second = PrefetchFolder(tmp_path, "t1"), PrefetchFolder(tmp_path, "t1")
    assert len(list((tmp_path / "t1").iterdir())) == 2  # the living ones are left alone
    first.close()
    second.close()


def test_a_file_that_cannot_be_written_is_read_from_the_log(tmp_path: Path) -> None:
    folder = PrefetchFolder(tmp_path, "t1")
    (own,) = (tmp_path / "t1").iterdir()
    own.rename(tmp_path / "elsewhere")
    folder.add(0, 0, 4, batch(0))
    folder.close()
    assert found(tmp_path, 0, 4) is None
