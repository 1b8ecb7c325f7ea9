"""Files that a power loss takes nothing from: what is synced, and in which order."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from headwater import durable


class Order:
    """The syncs and renames of a process, in their order."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self._fsync, self._replace = os.fsync, os.replace

    def fsync(self, fd: int) -> None:
        self._fsync(fd)
        name = Path(os.readlink(f"/proc/self/fd/{fd}")).name
        self.steps.append(f"sync {'draft' if name.startswith('.') else name}")

    def replace(self, draft: Path, path: Path) -> None:
        self._replace(draft, path)
        self.steps.append(f"rename to {path.name}")


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    noted = Order()
    monkeypatch.setattr(os, "fsync", noted.fsync)
    monkeypatch.setattr(os, "replace", noted.replace)
    return noted.steps


def test_a_file_is_synced_before_it_has_its_name_and_the_name_after(tmp_path: Path, order: list[str]) -> None:
    durable.write(tmp_path / "note", "old")
    durable.write(tmp_path / "note", b"new")
    assert order == ["sync draft", "rename to note", f"sync {tmp_path.name}"] * 2
    assert (tmp_path / "note").read_text() == "new"
    assert os.listdir(tmp_path) == ["note"]


def test_directories_are_made_durably_from_the_top(tmp_path: Path, order: list[str]) -> None:
    durable.make(tmp_path / "a" / "b")
    durable.make(tmp_path / "a" / "b")
    assert order == [f"sync {tmp_path.name}", "sync a"]


def test_a_tree_is_synced_with_all_that_is_in_it_but_what_its_links_lead_to(
    tmp_path: Path, order: list[str]
) -> None:
    (tmp_path / "tree" / "below").mkdir(parents=True)
    for name in ("tree/one", "tree/below/two", "outside"):
        (tmp_path / name).touch()
    (tmp_path / "tree" / "link").symlink_to("../outside")
    durable.sync_tree(tmp_path / "tree")
    assert sorted(order) == ["sync below", "sync one", "sync tree", "sync two"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "note").mkdir()
    (tmp_path / "note" / "kept").touch()
    with pytest.raises(OSError, match="directory"):
        durable.write(tmp_path / "note", "new")
    assert os.listdir(tmp_path) == ["note"]


def test_drafts_of_dead_processes_are_swept_and_nothing_else(tmp_path: Path) -> None:
    old, fresh = f".note-{'0' * 32}", f".note-{'1' * 32}"
    for name in (old, fresh, "note", ".hidden"):
        (tmp_path / name).touch()
    for name in (old, "note", ".hidden"):
        os.utime(tmp_path / name, (time.time() - 7200,) * 2)
    durable.sweep(tmp_path)
    durable.sweep(tmp_path / "not there")
    assert sorted(os.listdir(tmp_path)) == sorted([fresh, "note", ".hidden"])


def test_a_program_can_be_started_by_its_owner_alone(tmp_path: Path) -> None:
    durable.write(tmp_path / "run", "#!/bin/sh\n", executable=True)
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


def test_a_draft_that_fails_leaves_what_was_there_and_nothing_beside_it(tmp_path: Path) -> None:
    durable.write(tmp_path / "note", "before")
    with pytest.raises(ValueError, match="half"), durable.drafting(tmp_path / "note") as draft:
        draft.write_text("after")
        raise ValueError("half")
    assert (tmp_path / "note").read_text() == "before"
    assert os.listdir(tmp_path) == ["note"]


def test_a_tree_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="half"), durable.drafting_tree(tmp_path / "tree") as draft:
        durable.make(draft / "left")
        raise ValueError("half")
    assert not (tmp_path / "tree").exists()
    with durable.drafting_tree(tmp_path / "tree") as draft:
        durable.make(draft / "new")
    assert [path.name for path in (tmp_path / "tree").iterdir()] == ["new"]
    assert os.listdir(tmp_path) == ["tree"]


def test_a_new_file_takes_no_name_away(tmp_path: Path) -> None:
    assert durable.write_new(tmp_path / "1.json", b"first")
    assert not durable.write_new(tmp_path / "1.json", b"second")
    assert (tmp_path / "1.json").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["1.json"]


def test_a_new_file_is_synced_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = Order()
    monkeypatch.setattr(os, "fsync", order.fsync)
    durable.write_new(tmp_path / "1.json", b"data")
    assert order.steps == ["sync draft", f"sync {tmp_path.name}"]
