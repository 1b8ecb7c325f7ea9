"""The journal: written down before, finished after, kept for as long as a key counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headwater.serve.topics.request_journal import RequestJournal, WrittenRequest

REQUEST = WrittenRequest(0, "id1", "orders", "k", b"d", 0, 5, 2, 3, 1_000, b"rows", None)


def test_what_was_begun_is_pending_until_it_is_finished(tmp_path: Path) -> None:
    with RequestJournal(tmp_path) as journal:
        with journal.beginning() as beginning:
            id = beginning.add(REQUEST)
            unkeyed = beginning.add(replace(REQUEST, key=None, sequence=7))
        assert [each.id for each in journal.pending()] == [id, unkeyed]
        journal.finish([(id, "orders:0=2"), (unkeyed, "orders:0=4")], now=2_000)
        assert journal.pending() == []
        with journal.beginning() as beginning:
            known = beginning.find("id1", "k")
            assert known is not None and (known.position, known.payload) == ("orders:0=2", None)
            assert beginning.find("id2", "k") is None
        journal.finish([], now=5_000, keep=1_000)
        with journal.beginning() as beginning:
            assert beginning.find("id1", "k") is None


def test_what_fails_within_a_beginning_is_not_written(tmp_path: Path) -> None:
    with RequestJournal(tmp_path) as journal:
        try:
            with journal.beginning() as beginning:
                beginning.add(REQUEST)
                raise ValueError
        except ValueError:
            pass
        assert journal.pending() == []


def test_each_server_has_a_slot_and_gives_it_back(tmp_path: Path) -> None:
    with RequestJournal(tmp_path) as one, RequestJournal(tmp_path) as other:
        assert (one.slot, other.slot) == (0, 1)
        assert one.producer(0) == other.producer(0) != one.producer(1)
        with one.holding(1) as held:
            assert not held
    with RequestJournal(tmp_path) as later, later.holding(1) as held:
        assert later.slot == 0 and held


def test_what_will_not_be_appended_is_forgotten(tmp_path: Path) -> None:
    with RequestJournal(tmp_path) as journal:
        with journal.beginning() as beginning:
            id = beginning.add(REQUEST)
        journal.forget([id])
        assert journal.pending() == []
