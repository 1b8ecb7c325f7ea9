"""Runs are stored, read and mapped as they were."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.state.chunk_files import Files, Pack
from headwater.engine.state.run_files import StateRunFiles

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"], "c": [[1], [], None]})


def test_a_table_is_read_and_mapped_as_it_was_stored(tmp_path: Path) -> None:
    files = StateRunFiles(LocalFiles(tmp_path), Files(LocalFiles(tmp_path)))
    assert files.get(files.put(TABLE)).equals(TABLE)
    before = pa.total_allocated_bytes()
    mapped = files.map(files.put_mapped(pa.concat_tables([TABLE] * 1000)))
    assert mapped.equals(pa.concat_tables([TABLE] * 1000).combine_chunks())
    assert len(mapped["a"].chunks) == 1, "one stretch of memory, in which numbers are found"
    assert pa.total_allocated_bytes() - before < mapped.nbytes // 2, "it is not read"


def test_small_tables_of_a_step_share_a_file_and_mapped_ones_have_their_own(tmp_path: Path) -> None:
    pack = Pack(LocalFiles(tmp_path))
    files = StateRunFiles(LocalFiles(tmp_path), pack)
    small, large = [files.put(TABLE), files.put(TABLE)], files.put_mapped(TABLE)
    pack.write()
    assert small[0].file == small[1].file != large.file
    assert sum(1 for _ in tmp_path.iterdir()) == 2
    assert [files.get(each).equals(TABLE) for each in small] == [True, True]
    assert files.bytes_read == sum(each.size for each in small)
