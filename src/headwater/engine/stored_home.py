"""A pipeline whose home is in an object store: taken over, kept up, refused where something would be lost.

Its small files are on the machine that runs it, and their records in the store; states of operators are in
the store alone. Invariant: what a home on a disk keeps through a crash, this keeps through the loss of a
machine.
"""

from __future__ import annotations

import os
from pathlib import Path

from headwater.engine.files.home_files import HomeFiles
from headwater.engine.files.home_record import HomeRecord
from headwater.engine.files.local_files import LocalFiles
from headwater.engine.files.opening import open_files
from headwater.engine.home import notes
from headwater.errors import PipelineError
from headwater.pipeline.node import SinkNode, ViewNode
from headwater.pipeline.pipeline import Pipeline
from headwater.store_address import StoreAddress

STATE = "state.json"


class HomePublisher:
    """Puts what has changed in a home where it outlives the machine; one on a disk is there already."""

    def __init__(self, pipeline: Pipeline):
        address = pipeline.home_store
        self._record = None if address is None else _record(pipeline, address)

    def take(self) -> None:
        """Take the pipeline over from a runner on any machine, and have its home here."""
        if self._record is not None:
            self._record.take()

    def publish(self, *folders: Path) -> None:
        """Put folders of the home as they are now; or refuse, if another runner has taken over."""
        if self._record is not None:
            self._record.publish(*folders)

    def close(self) -> None:
        """Let others have the home."""
        if self._record is not None:
            self._record.close()


def refresh(pipeline: Pipeline) -> None:
    """Have a home in a store here as its newest record says, for reading."""
    if pipeline.home_store is not None:
        _record(pipeline, pipeline.home_store).refresh()


def check_storable(pipeline: Pipeline) -> None:
    """Refuse a home in a store for what is kept in SQLite files: they would be lost with a machine."""
    for node in pipeline.nodes if pipeline.home_store is not None else ():
        if isinstance(node, ViewNode) and node.store_url(pipeline.views) is None:
            hint = 'keep views in PostgreSQL: Pipeline(..., views="postgresql://...")'
        elif isinstance(node, SinkNode) and node.outbox(pipeline.home) is not None:
            hint = "give the pipeline a home on a disk"
        else:
            continue
        raise PipelineError(
            f"{node.title} cannot be kept in a home in an object store",
            detail="its rows would be in an SQLite file on the machine that runs it",
            hint=hint,
            location=node.location,
        )


def state_files(home: Path, store: str | None) -> HomeFiles:
    """Return where a version of a node keeps its state: below its home, or in the store that the home is in.

    In a store the folder has a random name, noted in the home: what a version of the same number has left
    there, of a home that was removed or a rebuild that was broken off, is never taken for its state.
    """
    if store is None:
        return LocalFiles(home / "state")
    token = notes.read(home / STATE)
    if token is None:
        token = os.urandom(8).hex()
        notes.write(home / STATE, token)
    return open_files(str(StoreAddress.parse(store).below("nodes", home.parent.name, home.name, token)))


def _record(pipeline: Pipeline, address: str) -> HomeRecord:
    return HomeRecord(open_files(str(StoreAddress.parse(address).below("record"))), pipeline.home)
