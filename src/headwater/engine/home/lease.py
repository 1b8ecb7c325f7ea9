"""Which runner has a pipeline: the newest one. An older one notices, and does not come back.

Sinks refuse the commits of a runner that was replaced; this keeps it from taking over again when
it restarts a node. Invariant: of two runners the one that came last goes on.
"""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path

from headwater.durations import instant, now
from headwater.engine.home import notes
from headwater.errors import Fenced


class Lease:
    """Whether a pipeline belongs to this runner."""

    def __init__(self, home: Path):
        self._path = home / "runner.json"
        self._id: str | None = None

    def take(self) -> None:
        """Take the pipeline over, once."""
        if self._id is not None:
            return
        self._id = uuid.uuid4().hex
        who = {"id": self._id, "host": socket.gethostname(), "pid": os.getpid(), "since": str(instant(now()))}
        notes.write(self._path, who)

    def check(self) -> None:
        """Refuse to go on if another runner has taken over since; who never took it may go on."""
        if self._id is None:
            return
        holder = notes.read(self._path)
        if holder is None:
            raise notes.damaged(self._path, "it is missing")
        if holder["id"] != self._id:
            raise Fenced(
                "another runner has taken over this pipeline",
                detail=f"process {holder['pid']} on {holder['host']}, since {holder['since']}",
                hint="let this runner end: the other goes on from the last batch",
            )
