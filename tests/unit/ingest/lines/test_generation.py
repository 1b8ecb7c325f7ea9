"""A generation is known again after it was compressed; where that cannot be told, it is refused."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.errors import SourceRefused
from headwater.ingest.lines.generation import FileMark, OpenFile, open_rotated, open_written, prefix_digest

CONTENT = b"".join(b"line %d\n" % number for number in range(2_000))
SECOND = 1_000_000_000


def marked(path: Path) -> FileMark:
    opened = opened_rotated(path)
    mark = FileMark.parse(str(opened.mark()))
    opened.close()
    return mark


def opened_rotated(path: Path) -> OpenFile:
    opened = open_rotated(path)
    assert opened is not None
    return opened


def written(path: Path, content: bytes, changed: int) -> Path:
    path.write_bytes(content)
    os.utime(path, ns=(changed, changed))
    return path


def is_one_of(path: Path, *marks: FileMark) -> bool:
    opened = opened_rotated(path)
    try:
        return opened.is_one_of(marks)
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_what_was_compressed_is_read_as_it_was_written(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    opened = opened_rotated(written(tmp_path / f"app.log.1{suffix}", compress(CONTENT), 5 * SECOND))
    parts = [opened.read(at, 700) for at in range(0, len(CONTENT) + 700, 700)]
    assert b"".join(parts) == CONTENT
    assert opened.holds(len(CONTENT), prefix_digest(CONTENT))
    assert not opened.holds(len(CONTENT) + 1, prefix_digest(CONTENT))
    assert opened.read(10, 20) == CONTENT[10:30] and not opened.empty
    opened.close()


@pytest.mark.parametrize("rounded", [False, True])
def test_a_file_that_was_read_is_known_after_it_was_compressed(tmp_path: Path, rounded: bool) -> None:
    time = 5 * SECOND + 123
    mark = marked(written(tmp_path / "app.log.1", CONTENT, time))
    after = time - time % SECOND if rounded else time
    assert is_one_of(written(tmp_path / "app.log.1.gz", gzip.compress(CONTENT), after), mark)
    assert is_one_of(written(tmp_path / "app.log.1.zst", b"?", after), mark)


def test_another_file_that_begins_alike_is_another_one(tmp_path: Path) -> None:
    mark = marked(written(tmp_path / "app.log.1", CONTENT, 5 * SECOND + 1))
    other = CONTENT[:9_000] + b"other\n"
    assert not is_one_of(written(tmp_path / "app.log.2.gz", gzip.compress(other), 5 * SECOND), mark)
    short = marked(written(tmp_path / "app.log.3", b"started\n", 5 * SECOND))
    again = gzip.compress(b"started\nstopped\n")
    assert not is_one_of(written(tmp_path / "app.log.4.gz", again, 9 * SECOND), short)


def test_what_nobody_can_tell_is_refused(tmp_path: Path) -> None:
    mark = marked(written(tmp_path / "app.log.1", CONTENT, 5 * SECOND))
    longer = written(tmp_path / "app.log.1.gz", gzip.compress(CONTENT + b"late\n"), 9 * SECOND)
    for path in (longer, written(tmp_path / "app.log.2.zst", b"?", 9 * SECOND)):
        with pytest.raises(SourceRefused, match="may have lines that were not read") as refused:
            is_one_of(path, mark)
        assert "move it away" in str(refused.value.hint)


def test_a_compressed_file_is_known_by_its_inode_and_time_unread(tmp_path: Path) -> None:
    path = written(tmp_path / "app.log.1.gz", b"not compressed at all", 5 * SECOND)
    mark = marked(path)
    assert is_one_of(path, mark)
    with pytest.raises(SourceRefused, match="cannot be read"):  # another one, in the same place
        is_one_of(written(path, b"nor this", 6 * SECOND), mark, marked(written(tmp_path / "a", b"x", 1)))


def test_a_file_that_is_being_written_is_read_as_it_is(tmp_path: Path) -> None:
    data = gzip.compress(CONTENT)
    opened = open_written(written(tmp_path / "app.gz", data, 1))
    assert opened is not None and opened.read(0, len(data)) == data
    opened.close()
    assert open_written(tmp_path / "none") is None
