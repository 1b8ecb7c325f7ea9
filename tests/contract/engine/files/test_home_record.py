"""Records of a home: one runner has it, and it goes on wherever the next one is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from faulty_http import Fault, FaultyServer
from headwater.engine.files.home_files import HomeFiles
from headwater.engine.files.home_record import RETAINED, HomeRecord
from headwater.errors import Fenced, SinkUnavailable, UsageError

Opened = Callable[[], HomeFiles]


Taken = Callable[[HomeFiles, Path], HomeRecord]


@pytest.fixture
def taken() -> Iterator[Taken]:
    """Takes a home over, as a machine does that has it in a directory."""
    with ExitStack() as opened:

        def take(files: HomeFiles, home: Path) -> HomeRecord:
            record = HomeRecord(files, home)
            opened.callback(record.close)
            record.take()
            return record

        yield take


def note(home: Path, text: str, name: str = "note") -> None:
    (home / "nodes").mkdir(exist_ok=True)
    (home / "nodes" / name).write_text(text)


def test_a_home_goes_on_on_another_machine(opened: Opened, taken: Taken, tmp_path: Path) -> None:
    old = taken(opened(), tmp_path / "a")
    for number in range(5):
        note(tmp_path / "a", str(number))
        old.publish(tmp_path / "a" / "nodes")
    shutil.rmtree(tmp_path / "a")
    taken(opened(), tmp_path / "b")
    assert (tmp_path / "b" / "nodes" / "note").read_text() == "4"


def test_a_runner_that_was_replaced_is_fenced_however_long_it_slept(
    opened: Opened, taken: Taken, tmp_path: Path
) -> None:
    old = taken(opened(), tmp_path / "a")
    note(tmp_path / "a", "first")
    old.publish(tmp_path / "a")
    new = taken(opened(), tmp_path / "b")
    for number in range(3 * RETAINED):
        note(tmp_path / "b", str(number))
        new.publish(tmp_path / "b")
    note(tmp_path / "a", "of the old one")
    for _ in range(2):
        with pytest.raises(Fenced, match="another runner has taken over this pipeline"):
            old.publish(tmp_path / "a")
    taken(opened(), tmp_path / "c")
    assert (tmp_path / "c" / "nodes" / "note").read_text() == str(3 * RETAINED - 1)


def test_what_has_not_changed_is_not_put_and_old_records_go(
    opened: Opened, taken: Taken, tmp_path: Path
) -> None:
    record = taken(opened(), tmp_path / "a")
    for number in range(10):
        note(tmp_path / "a", str(number))
        for _ in range(3):
            record.publish(tmp_path / "a")
    names = [name for name in opened().sizes() if name.endswith(".json")]
    assert sorted(names, key=len) == ["1.json", "9.json", "10.json", "11.json"]


def test_a_second_runner_on_a_machine_is_refused_and_readers_leave_it_alone(
    opened: Opened, taken: Taken, tmp_path: Path
) -> None:
    first = taken(opened(), tmp_path / "a")
    note(tmp_path / "a", "published")
    first.publish(tmp_path / "a")
    note(tmp_path / "a", "not yet")
    with pytest.raises(UsageError, match="another runner on this machine has this pipeline"):
        taken(opened(), tmp_path / "a")
    HomeRecord(opened(), tmp_path / "a").refresh()
    assert (tmp_path / "a" / "nodes" / "note").read_text() == "not yet"
    HomeRecord(opened(), tmp_path / "b").refresh()
    assert (tmp_path / "b" / "nodes" / "note").read_text() == "published"
    first.publish(tmp_path / "a")
    first.close()
    taken(opened(), tmp_path / "a")


@pytest.mark.parametrize("kind", ["500", "lost"])
def test_a_record_that_could_not_be_put_is_put_later_and_fences_nobody(
    faulty: HomeFiles, proxy: FaultyServer, taken: Taken, tmp_path: Path, kind: str
) -> None:
    record = taken(faulty, tmp_path / "a")
    note(tmp_path / "a", "first")
    proxy.faults.always = Fault(kind)
    with pytest.raises(SinkUnavailable):
        record.publish(tmp_path / "a")
    proxy.faults.always = None
    record.publish(tmp_path / "a")
    note(tmp_path / "a", "second")
    record.publish(tmp_path / "a")
    taken(faulty, tmp_path / "b")
    assert (tmp_path / "b" / "nodes" / "note").read_text() == "second"
