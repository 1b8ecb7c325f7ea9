from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.log.tag_index import Indexed, Place, TagIndex
from headwater.log.tags import text_tag

A, B, C = map(text_tag, "abc")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[TagIndex]:
    made = TagIndex(tmp_path / "tags.db")
    yield made
    made.close()


def filled(index: TagIndex, flushed: int) -> TagIndex:
    """Ten offsets: A at all, B at the even ones, C at 9; some of them are stored."""
    for offset in range(10):
        tags = [A, *([B] if offset % 2 == 0 else []), *([C] if offset == 9 else [])]
        index.add_frame(0, offset, Place(0, offset * 100))
        index.add(0, offset, [tags])
        index.reach(0, Indexed(offset + 1, Place(0, offset * 100 + 100), b""))
        if offset + 1 == flushed:
            index.flush(0, b"anchor")
    return index


@pytest.mark.parametrize("flushed", [0, 3, 10])
def test_postings_are_found_wherever_they_are(index: TagIndex, flushed: int) -> None:
    filled(index, flushed)
    assert index.newest([A], 0, 0) == 9
    assert index.newest([A], 0, 0, before=4) == 3
    assert index.newest([B], 0, 9) is None
    assert index.newest([A, B], 0, 0) == 8
    assert index.newest([B, C], 0, 0) is None
    assert index.newest([A], 1, 0) is None
    assert index.offsets([A, B], 0, 3, 8) == [4, 6]
    assert index.offsets([C], 0, 0) == [9]
    assert index.frame(0, 5) == (5, Place(0, 500))
    assert index.reached(0).until == 10


def test_what_was_stored_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    filled(TagIndex(tmp_path / "tags.db"), 6).close()
    again = TagIndex(tmp_path / "tags.db")
    assert again.reached(0) == Indexed(6, Place(0, 600), b"anchor")
    assert again.offsets([A], 0, 0) == list(range(6))
    again.restart(0)
    assert again.reached(0).until == 0
    assert again.offsets([A], 0, 0) == []
    again.close()


def test_what_was_not_stored_can_be_forgotten(index: TagIndex) -> None:
    filled(index, 6).forget(0)
    assert index.reached(0).until == 6
    assert index.newest([A], 0, 0) == 5


def test_two_that_store_the_same_postings_agree(tmp_path: Path) -> None:
    first, second = (TagIndex(tmp_path / "tags.db") for _ in range(2))
    filled(first, 4)
    filled(second, 7)
    first.flush(0)
    assert first.offsets([A], 0, 0) == second.offsets([A], 0, 0) == list(range(10))
    first.close(), second.close()


def test_what_is_in_memory_alone_is_counted_and_gone_when_it_is_forgotten(index: TagIndex) -> None:
    filled(index, 0)
    assert (index.unstored(0), index.last_frame(0)) == (16, Place(0, 900))
    index.flush(0, b"anchor")
    assert (index.unstored(0), index.last_frame(0), index.reached(0).anchor) == (0, None, b"anchor")


def test_a_file_that_is_no_database_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "tags.db").write_bytes(b"garbage" * 1000)
    index = TagIndex(tmp_path / "tags.db")
    assert index.reached(0).until == 0
    index.close()


def test_a_setting_is_what_was_noted_first(index: TagIndex) -> None:
    assert index.setting("partitions", "3") == "3"
    assert index.setting("partitions", "4") == "3"


def test_random_questions_have_the_answers_of_a_plain_list() -> None:
    chance, index, rows = random.Random(5), TagIndex(None), list[set[bytes]]()
    words = [text_tag(str(n)) for n in range(6)]
    for offset in range(300):
        rows.append(set(chance.sample(words, chance.randint(0, 4))))
        index.add(2, offset, [sorted(rows[-1])])
        index.reach(2, Indexed(offset + 1, Place(0, 0), b""))
        if chance.random() < 0.05:
            index.flush(2)
        asked, after = chance.sample(words, chance.randint(1, 3)), chance.randint(0, offset)
        expected = [n for n in range(after, offset + 1) if rows[n] >= set(asked)]
        assert index.offsets(asked, 2, after) == expected
        assert index.newest(asked, 2, after) == (expected[-1] if expected else None)
    index.close()
