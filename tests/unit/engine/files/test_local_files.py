"""Files in a directory: synced where they stay, and mapped from there."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.engine.files.local_files import LocalFiles


def test_a_file_is_written_where_it_stays(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    files.create("a", b"data")
    assert files.create_mapped("b", lambda file: file.write(b"mapped")) == 6
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"data", "b": b"mapped"}
    before = pa.total_allocated_bytes()
    assert files.map("b").read_buffer().to_pybytes() == b"mapped"
    assert pa.total_allocated_bytes() == before


def test_a_file_is_never_written_twice(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    files.create("a", b"data")
    with pytest.raises(FileExistsError):
        files.create("a", b"other")


def test_a_draft_is_no_file(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "state")
    files.make()
    (tmp_path / "state" / f".1.json-{os.urandom(16).hex()}").write_bytes(b"{")
    assert files.sizes() == {}
