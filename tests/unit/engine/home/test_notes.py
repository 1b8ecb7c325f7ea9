"""Notes of a pipeline's home: whole, found again, and never taken for missing when they are damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.engine.home import node_progress, notes
from headwater.errors import HeadwaterError


def test_a_note_is_read_back(tmp_path: Path) -> None:
    assert notes.read(tmp_path / "note.json") is None
    notes.write(tmp_path / "note.json", {"a": [1, None, "ä"]})
    assert notes.read(tmp_path / "note.json") == {"a": [1, None, "ä"]}


@pytest.mark.parametrize("left", [b"", b'{"batch": 3', b"\xff\xfe\0"])
def test_a_damaged_note_is_refused_with_what_to_do(tmp_path: Path, left: bytes) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "committed").write_bytes(left)
    with pytest.raises(HeadwaterError, match=r'committed" of a pipeline is damaged\n.*\nhint: restore'):
        node_progress.read(tmp_path)
