"""Versions of a node: each has a checkpoint of its own, and one of them is in force.

A rebuild writes the next version beside the one that readers see, and then takes its place. For a
view its store says which version is in force, and for a sink its target, so the switch is one transaction.

Invariant: a checkpoint belongs to one version, and a version's rows come from its checkpoint alone.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from headwater import durable
from headwater.engine.home import notes
from headwater.errors import SinkUnavailable, UsageError
from headwater.pipeline.node import Node, SinkNode
from headwater.pipeline.pipeline import Pipeline
from headwater.views.store import Store, Views


@dataclass(frozen=True)
class Version:
    """One version of a node."""

    number: int
    home: Path

    @property
    def start(self) -> str:
        """Where it began to read: a position in every input, as text."""
        path = self.home / "start"
        return path.read_text() if path.exists() else "earliest"


class Versions:
    """The versions of a pipeline's nodes."""

    def __init__(self, pipeline: Pipeline, views: Views):
        self._home, self._views = pipeline.home, views

    def current(self, node: Node) -> Version:
        """Return the version in force."""
        if isinstance(node, SinkNode):
            return self._version(node, self._of_sink(node))
        try:
            published = [number for number, shown in self._stored(node).items() if shown]
        except SinkUnavailable:
            # A store that is down keeps no pipeline from starting: the only version with a checkpoint is it.
            published = versions_on_disk(self._home, node)
            if len(published) > 1:
                raise
        return self._version(node, published[0] if published else 1)

    def replaced(self, node: Node, version: Version) -> bool:
        """Tell whether another version is in force by now; a store that cannot be asked says no."""
        try:
            return self.current(node) != version
        except SinkUnavailable:
            return False

    def _of_sink(self, node: SinkNode) -> int:
        """Return the version of a sink in force: the only one that is here, or else its target tells."""
        here = versions_on_disk(self._home, node)
        versions = node.versions(self._home)
        if len(here) > 1 and versions is not None:
            return versions.published()
        return here[0] if here else 1

    def _stored(self, node: Node) -> dict[int, bool]:
        if not node.has_versions:
            return {}
        try:
            return self._views.versions(node.name)
        except UsageError:  # it has never run
            return {}

    def _version(self, node: Node, number: int) -> Version:
        return Version(number, self._home / "nodes" / node.name / f"v{number}")


class Rebuilding(Versions):
    """The same, for those who build a version beside the others and put it in force."""

    def __init__(self, pipeline: Pipeline, store: Store):
        super().__init__(pipeline, store)
        self._store = store

    @contextmanager
    def alone(self, node: Node) -> Iterator[None]:
        """Keep others from building a version of a node, which would have the same number and checkpoint."""
        folder = self._home / "nodes" / node.name
        durable.make(folder)
        with open(folder / "rebuild.lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"{node.title} is being built anew already",
                    detail="by another program, or another thread",
                    hint="wait for its end, or stop it",
                ) from None
            yield

    def next(self, node: Node, start: str = "earliest") -> Version:
        """Return a version to be built beside the others, from a position on."""
        if not node.has_versions:
            raise UsageError(
                f"{node.title} cannot be built anew",
                detail="only views have versions, and sinks whose target does",
                hint=node.recompute_hint,
            )
        version = self._version(node, self._next_number(node))
        shutil.rmtree(version.home, ignore_errors=True)  # what a rebuild left that was broken off
        durable.make(version.home)
        durable.write(version.home / "start", start)
        return version

    def _next_number(self, node: Node) -> int:
        versions = node.versions(self._home) if isinstance(node, SinkNode) else None
        if versions is None:
            return max(self._stored(node), default=0) + 1
        number = versions.published() + 1
        versions.prepare(number)
        return number

    def publish(self, node: Node, version: Version, columns: pa.Schema) -> None:
        """Put a version in force, and remove all older ones."""
        versions = node.versions(self._home) if isinstance(node, SinkNode) else None
        if versions is not None:
            versions.publish(columns, version.number)
            for number in versions_on_disk(self._home, node):
                if number != version.number:
                    shutil.rmtree(self._version(node, number).home, ignore_errors=True)
            return
        self._store.publish(node.name, version.number)
        for number in self._stored(node):
            if number != version.number:
                self._store.drop(node.name, number)
                shutil.rmtree(self._version(node, number).home, ignore_errors=True)


def versions_on_disk(home: Path, node: Node) -> list[int]:
    """Return the versions of a node that have left something in the pipeline's home, oldest first."""
    folders = (home / "nodes" / node.name).glob("v[0-9]*")
    return sorted(int(folder.name[1:]) for folder in folders if folder.name[1:].isdecimal())


def producer(topic: str, version: Version) -> str:
    """Return as whom a version writes rows apart: each numbers its batches anew.

    So does one of the same number in a home that was removed and made again.
    """
    return f"{topic}.v{version.number}.{_identity(version.home)}"


def _identity(home: Path) -> str:
    """Return what tells a checkpoint from any other, also from one that had its name before."""
    return str((notes.read(home / "definition.json") or {}).get("id", ""))
