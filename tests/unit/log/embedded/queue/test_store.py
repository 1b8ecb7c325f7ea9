"""The file of a queue: writers take turns, cursors are of one topic."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headwater.log.embedded.queue import store as stores
from headwater.log.embedded.queue.store import DEAD, TOPIC, QueueStore, set_cursor, state_path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueStore]:
    with open(tmp_path / "mutex", "ab") as mutex, closing(_opened(tmp_path, mutex)) as store:
        yield store


def _opened(root: Path, mutex: object) -> QueueStore:
    return QueueStore(root / "x.db", root, mutex, fsync=False)  # type: ignore[arg-type]


def test_writers_of_several_connections_take_turns(tmp_path: Path) -> None:
    def write() -> None:
        with open(tmp_path / "mutex", "ab") as mutex, closing(_opened(tmp_path, mutex)) as store:
            for _ in range(50):
                with store.transaction() as db:
                    [(count,)] = db.execute("SELECT COUNT(*) FROM cursors").fetchall()
                    set_cursor(db, TOPIC, "id", count, 0)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open(tmp_path / "mutex", "ab") as mutex, closing(_opened(tmp_path, mutex)) as store:
        assert sorted(store.cursors(TOPIC)) == list(range(200))


def test_a_cursor_of_an_earlier_topic_does_not_count(store: QueueStore) -> None:
    with store.transaction() as db:
        set_cursor(db, DEAD, "first", 0, 7)
    assert (store.cursor_of(DEAD, "first"), store.cursor_of(DEAD, "second")) == (7, 0)
    with store.transaction() as db:
        set_cursor(db, DEAD, "second", 0, 1)
    assert (store.cursor_of(DEAD, "first"), store.cursor_of(DEAD, "second")) == (0, 1)


def test_a_state_is_removed_with_its_files(tmp_path: Path) -> None:
    path = state_path(tmp_path, "t", "g")
    path.parent.mkdir()
    path.touch()
    path.with_name(path.name + "-wal").touch()
    stores.remove(path)
    assert list(path.parent.iterdir()) == []
