"""What is particular about reading views from a SQLite file; the rest is in tests/contract/views."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from file_trees import tree
from headwater.sinks import Batch
from headwater.views import ViewStore, open_views


def test_a_store_in_a_read_only_place_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    with ViewStore(home / "views.db") as store:
        sink = store.sink("counter", "id BIGINT, n BIGINT", "id")
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1], "n": [1]})))
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    (home / "views.db").chmod(stat.S_IRUSR)
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with open_views(home / "views.db") as views:
            assert views["counter"].get(1) == {"id": 1, "n": 1}
    finally:
        home.chmod(stat.S_IRWXU)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A home as a runner leaves it that was killed: rows are in the write-ahead log alone."""
    with ViewStore(tmp_path / "living" / "views.db") as store:
        sink = store.sink("counter", "id BIGINT, n BIGINT", "id")
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1], "n": [1]})))
        shutil.copytree(tmp_path / "living", tmp_path / "home")
    return tmp_path / "home"


def test_reading_what_a_killed_runner_left_changes_nothing(killed: Path) -> None:
    before = tree(killed)
    assert before["views.db-wal"]
    with open_views(killed / "views.db") as views:
        assert views["counter"].get(1) == {"id": 1, "n": 1}
    del before["views.db-shm"]  # by which readers and a writer agree, and nothing is kept
    after = tree(killed)
    assert {name: after[name] for name in before} == before


def test_reading_what_was_closed_leaves_nothing_behind(tmp_path: Path) -> None:
    with ViewStore(tmp_path / "views.db") as store:
        store.sink("counter", "id BIGINT, n BIGINT", "id").begin()
    before = tree(tmp_path)
    with open_views(tmp_path / "views.db") as views:
        assert views["counter"].count() == 0
    assert tree(tmp_path) == before


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that another user can reach."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        yield Path(path)


@pytest.mark.parametrize("left", [("views.db", "views.db-wal"), ("views.db", "views.db-wal", "views.db-shm")])
def test_rows_of_a_killed_runner_are_read_in_a_read_only_place_too(
    killed: Path, public: Path, left: tuple[str, ...]
) -> None:
    home = public / "home"
    home.mkdir()
    for name in left:
        shutil.copyfile(killed / name, home / name)
        (home / name).chmod(0o444)
    home.chmod(0o555)
    code = """
        import os, sys
        import headwater.views.sqlite.store  # before its files cannot be read any more
        from headwater.views import open_views
        if os.geteuid() == 0:  # who may write anywhere
            os.setgid(65534); os.setuid(65534)
        with open_views(sys.argv[1]) as views:
            print(views["counter"].get(1), views["counter"].count())
    """
    run = [sys.executable, "-c", textwrap.dedent(code), str(home / "views.db")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    home.chmod(0o755)
    assert done.stdout == "{'id': 1, 'n': 1} 1\n", done.stderr
    assert sorted(tree(home)) == sorted(left)
