"""Versions of a node: each has a checkpoint of its own, and one of them is in force.

A rebuild writes the next version beside the one that readers see, and then takes its place. For a
view the store says which version is in force, so the switch is one transaction.

Invariant: a checkpoint belongs to one version, and a version's rows come from its checkpoint alone.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from headwater import durable
from headwater.engine.home import notes
from headwater.errors import SinkUnavailable, UsageError
from headwater.pipeline.node import Node
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

    def next(self, node: Node, start: str = "earliest") -> Version:
        """Return a version to be built beside the others, from a position on."""
        if not node.has_versions:
            raise UsageError(
                f"{node.title} cannot be built anew",
                detail="only views have versions",
                hint=node.recompute_hint,
            )
        version = self._version(node, max(self._stored(node), default=0) + 1)
        shutil.rmtree(version.home, ignore_errors=True)  # what a rebuild left that was broken off
        durable.make(version.home)
        durable.write(version.home / "start", start)
        return version

    def publish(self, node: Node, version: Version) -> None:
        """Put a version in force, and remove all older ones."""
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
