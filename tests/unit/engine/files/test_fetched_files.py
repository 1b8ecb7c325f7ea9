"""What a machine has fetched: once, whole, and no more than it may keep."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pytest

from headwater.engine.files.fetched_files import FetchedFiles, default_folder, default_limit


class Store:
    """Counts how often something is fetched."""

    def __init__(self) -> None:
        self.fetched = 0

    def fetch(self, file: BinaryIO) -> None:
        self.fetched += 1
        file.write(b"x" * 100)


def test_a_file_is_fetched_once_and_by_no_other_process(tmp_path: Path) -> None:
    store = Store()
    for files in (FetchedFiles(tmp_path / "a"), FetchedFiles(tmp_path / "a")):
        for _ in range(3):
            assert files.use("name", store.fetch, Path.read_bytes) == b"x" * 100
    assert store.fetched == 1


def test_files_that_were_used_longest_ago_make_room(tmp_path: Path) -> None:
    files, store = FetchedFiles(tmp_path, limit=350), Store()
    for number in range(3):
        files.use(str(number), store.fetch, Path.read_bytes)
        os.utime(tmp_path / str(number), (number, number))
    files.use("0", store.fetch, Path.read_bytes)
    files.use("new", store.fetch, Path.read_bytes)
    assert sorted(os.listdir(tmp_path)) == ["0", "2", "new"]
    assert store.fetched == 4


def test_a_file_larger_than_all_that_may_be_kept_can_be_used(tmp_path: Path) -> None:
    files = FetchedFiles(tmp_path, limit=10)
    assert files.use("large", Store().fetch, Path.read_bytes) == b"x" * 100


def test_a_mapped_file_stays_with_those_who_have_mapped_it(tmp_path: Path) -> None:
    files = FetchedFiles(tmp_path, limit=100)
    mapped = files.use("old", Store().fetch, lambda path: pa.memory_map(str(path)))
    os.utime(tmp_path / "old", (1, 1))
    files.use("new", Store().fetch, Path.read_bytes)
    assert os.listdir(tmp_path) == ["new"]
    assert mapped.read() == b"x" * 100


def test_a_fetch_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise OSError("cut")

    with pytest.raises(OSError, match="cut"):
        FetchedFiles(tmp_path).use("name", fail, Path.read_bytes)
    assert os.listdir(tmp_path) == []


def test_the_environment_says_where_and_how_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_FETCHED", str(tmp_path))
    monkeypatch.setenv("HEADWATER_FETCHED_BYTES", "1000")
    assert (default_folder(), default_limit()) == (tmp_path, 1000)
    monkeypatch.delenv("HEADWATER_FETCHED")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "headwater" / "fetched"
