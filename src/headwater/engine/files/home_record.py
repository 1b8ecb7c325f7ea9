"""What a pipeline with a home in a store goes on from: numbered records of its small files.

A runner that takes over puts a record of its own under the next number, and so fences the one before, which
wants that number too. From then on it puts one before each micro-batch begins, with what was noted since; a
record that is not there yet when the machine is lost costs the repetition of what sinks leave out.

Invariant: nothing of a micro-batch is done before the record with its plan is in the store; and no record
follows one that its writer has not seen.
"""

from __future__ import annotations

import fcntl
import json
import re
import threading
import uuid
from pathlib import Path
from typing import IO

from headwater import durable
from headwater.engine.files.home_files import HomeFiles
from headwater.engine.files.home_snapshot import HomeSnapshot, collect, restore
from headwater.engine.home.notes import damaged
from headwater.errors import Fenced, UsageError

RETAINED = 3
"""Records of a runner that are retained beside its first, for people to look at."""
RUNNERS = 1000
"""How many runners later the number of one that was replaced is still taken."""
_RECORD = re.compile(r"(\d+)\.json")


class HomeRecord:
    """The records of one pipeline, and its home on this machine."""

    def __init__(self, files: HomeFiles, home: Path):
        self._files, self._home = files, home.resolve()
        self._runner, self._last = uuid.uuid4().hex, 0
        self._snapshot, self._own = HomeSnapshot(), list[int]()
        self._lock, self._held = threading.Lock(), None

    _held: IO[str] | None

    def take(self) -> None:
        """Take the pipeline over, and make the home on this machine what the newest record says."""
        self._hold()
        self._files.make()
        while not self._take_over():  # another has put a record since it was read
            pass
        restore(self._home, self._snapshot)

    def publish(self, *folders: Path) -> None:
        """Put a record with some folders of the home as they are now; or refuse, if there is a successor."""
        with self._lock:
            now = self._snapshot
            for folder in (folder.resolve() for folder in folders):
                name = folder.relative_to(self._home).as_posix()
                now = now.updated(name, collect(self._home, folder))
            if now != self._snapshot:
                self._put(now)
                self._snapshot = now
                self._trim()

    def refresh(self) -> None:
        """Make the home on this machine what the newest record says, unless a runner is at work in it."""
        try:
            self._hold()
        except UsageError:
            return
        try:
            numbers = self._numbers()
            restore(self._home, self._read(max(numbers)) if numbers else HomeSnapshot())
        finally:
            self.close()

    def close(self) -> None:
        """Let another runner of this machine have the home."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _hold(self) -> None:
        """Refuse a second runner on this machine: both would write the same files."""
        durable.make(self._home, private=True)
        self._held = open(self._home / "runner.lock", "w")
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise UsageError(
                "another runner on this machine has this pipeline",
                detail=f'it holds "{self._home}"',
                hint="stop it first; a runner on another machine takes over by itself",
            ) from None

    def _take_over(self) -> bool:
        numbers = self._numbers()
        self._last = max(numbers, default=0)
        try:
            self._snapshot = self._read(self._last) if numbers else HomeSnapshot()
        except FileNotFoundError:
            return False  # removed by one who goes on meanwhile
        if not self._commit(self._snapshot):
            return False
        self._last += 1  # and is never trimmed: it is what fences the runner before
        self._files.remove(f"{number}.json" for number in numbers[: -RUNNERS * (RETAINED + 1)])
        return True

    def _numbers(self) -> list[int]:
        return sorted(int(match[1]) for match in map(_RECORD.fullmatch, self._files.sizes()) if match)

    def _put(self, snapshot: HomeSnapshot) -> None:
        """Put the next record; where its number is taken, by an attempt of our own or by a successor."""
        while not self._commit(snapshot):
            if json.loads(self._files.listed(f"{self._last + 1}.json"))["runner"] != self._runner:
                raise Fenced(
                    "another runner has taken over this pipeline",
                    detail=f'it has put a record into "{self._files.location}"',
                    hint="let this runner end: the other goes on from the last batch",
                )
            self._advance()
        self._advance()

    def _commit(self, snapshot: HomeSnapshot) -> bool:
        record = {"runner": self._runner, "id": uuid.uuid4().hex, **snapshot.to_json()}
        return self._files.commit(f"{self._last + 1}.json", json.dumps(record).encode())

    def _advance(self) -> None:
        self._last += 1
        self._own.append(self._last)

    def _trim(self) -> None:
        """Remove records of this runner, but for its first, whose number its predecessor wants."""
        outdated, self._own = self._own[:-RETAINED], self._own[-RETAINED:]
        self._files.remove(f"{number}.json" for number in outdated)

    def _read(self, number: int) -> HomeSnapshot:
        name = f"{number}.json"
        try:
            return HomeSnapshot.from_json(json.loads(self._files.listed(name)))
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(f"{self._files.location}/{name}", str(error)) from None
