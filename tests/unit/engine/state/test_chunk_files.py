"""Chunks as files: those of several buckets in one, and what is read is what was put."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.state import chunk_files
from headwater.engine.state.chunk_files import PACKED_BYTES, Files, Pack
from headwater.errors import HeadwaterError
from headwater.operators.memory.run import Stretch

DATA = st.one_of(st.binary(min_size=1, max_size=50), st.sampled_from([b"x" * PACKED_BYTES]))


@given(st.lists(DATA, max_size=10))
def test_what_is_packed_is_read_back(data: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        pack = Pack(LocalFiles(Path(folder)))
        chunks = [pack.put(each) for each in data]
        pack.write()
        assert [Files(LocalFiles(Path(folder))).get(chunk) for chunk in chunks] == data
        large = sum(len(each) >= PACKED_BYTES for each in data)
        assert len(list(Path(folder).iterdir())) == large + (len(data) > large)
        check(Path(folder), chunks)


def test_a_pack_without_chunks_leaves_no_file(tmp_path: Path) -> None:
    Pack(LocalFiles(tmp_path)).write()
    assert not list(tmp_path.iterdir())


def test_a_pack_that_was_cut_is_refused(tmp_path: Path) -> None:
    pack = Pack(LocalFiles(tmp_path))
    first, last = pack.put(b"first"), pack.put(b"last")
    pack.write()
    (tmp_path / first.file).write_bytes(b"firstla")
    check(tmp_path, [first])
    with pytest.raises(HeadwaterError, match="is damaged\ndetail: it has 7 bytes only\nhint: restore"):
        check(tmp_path, [first, last])


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HeadwaterError, match="is damaged\ndetail: it is missing"):
        check(tmp_path, [Stretch("0" * 16, 1)])


def check(folder: Path, chunks: list[Stretch]) -> None:
    files = LocalFiles(folder)
    chunk_files.check(files.location, files.sizes(), chunks)
