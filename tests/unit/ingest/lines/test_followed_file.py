"""Which file a name means, through rotations."""

from __future__ import annotations

import gzip
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.errors import SourceRefused
from headwater.ingest.lines import followed_file
from headwater.ingest.lines.followed_file import PASSED, FilePlace
from headwater.ingest.lines.generation import OpenFile


def read_to(path: Path, offset: int) -> FilePlace:
    opened = OpenFile(path)
    place = replace(
        followed_file.begin(path), inode=opened.inode, offset=offset, line=1, digest=opened.digest(offset)
    )
    opened.close()
    return place


def found(path: Path, place: FilePlace) -> str:
    opened = followed_file.find(path, place)
    assert opened is not None
    opened.close()
    return opened.path.name


def compressed(path: Path) -> Path:
    """Compress a file as gzip does, which keeps its times."""
    made = path.with_name(path.name + ".gz")
    made.write_bytes(gzip.compress(path.read_bytes()))
    os.utime(made, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    path.unlink()
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "app.log.9").write_bytes(b"older\n")
    (tmp_path / "app.log").write_bytes(b"one\ntwo\n")
    return tmp_path / "app.log"


def test_a_place_is_noted_and_read_again(path: Path) -> None:
    place = read_to(path, 4)
    assert FilePlace.of(place.to_dict()) == place
    assert found(path, place) == "app.log"


def test_a_file_is_found_after_it_was_renamed(path: Path) -> None:
    place = read_to(path, 4)
    path.rename(path.with_name("app.log.1"))
    path.write_bytes(b"new\n")
    assert found(path, place) == "app.log.1"


def test_the_copy_of_a_file_is_found_after_it_was_emptied(path: Path) -> None:
    place = read_to(path, 4)
    shutil.copy(path, path.with_name("app.log.1"))
    path.write_bytes(b"")
    assert found(path, place) == "app.log.1"


@pytest.mark.parametrize("after", [b"", b"one", b"other text\n"])
def test_a_file_that_is_gone_is_not_guessed_at(path: Path, after: bytes) -> None:
    place = read_to(path, 4)
    path.write_bytes(after)
    with pytest.raises(SourceRefused, match="is another one than was read before"):
        followed_file.find(path, place)


def test_generations_that_were_there_before_are_passed_and_those_that_came_since_are_not(path: Path) -> None:
    place = followed_file.begin(path)
    assert found(path, place) == "app.log"
    path.rename(path.with_name("app.log.1"))
    path.write_bytes(b"new\n")
    assert found(path, place) == "app.log.1"
    first = OpenFile(path.with_name("app.log.1"))
    place = followed_file.passed(first, place)
    first.close()
    with first.path.open("ab") as late:
        late.write(b"late\n")
    assert found(path, place) == "app.log"


def test_no_generation_is_read_twice_however_many_are_left_beside_the_file(tmp_path: Path) -> None:
    path, names = tmp_path / "app.log", [f"app.log.{number}" for number in range(3 * PASSED)]
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(b"line %d\n" % number)
        os.utime(tmp_path / name, ns=(number + 1, number + 1))
    path.write_bytes(b"newest\n")
    place, seen = FilePlace(), []
    while (opened := followed_file.following(path, place)) is not None and opened.path != path:
        seen.append(opened.path.name)
        place = followed_file.passed(opened, place)
        opened.close()
    assert seen == names and len(place.passed) == PASSED
    assert opened is not None and FilePlace.of(place.to_dict()) == place
    opened.close()
    assert followed_file.begin(path).horizon == place.horizon, "those that were there before are passed alike"


def test_a_file_that_was_compressed_before_it_was_read_to_its_end_is_found(path: Path) -> None:
    place = read_to(path, 4)
    compressed(path.rename(path.with_name("app.log.1")))
    path.write_bytes(b"new\n")
    opened = followed_file.find(path, place)
    assert opened is not None and (opened.path.name, opened.read(4, 10)) == ("app.log.1.gz", b"two\n")
    opened.close()


def test_a_file_is_not_read_beside_the_one_that_is_being_compressed(path: Path) -> None:
    place = followed_file.begin(path)
    path.with_name("app.log.1").write_bytes(b"new\n")
    path.with_name("app.log.1.gz").write_bytes(b"half")
    assert found(path, place) == "app.log.1"


def test_compressed_generations_that_were_there_before_are_passed_unread(path: Path) -> None:
    for ending in (".gz", ".zst"):
        path.with_name(f"app.log.2{ending}").write_bytes(b"not compressed at all")
    assert found(path, followed_file.begin(path)) == "app.log"


def test_a_directory_is_not_followed(tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match="is not a file that can be followed"):
        OpenFile(tmp_path)
