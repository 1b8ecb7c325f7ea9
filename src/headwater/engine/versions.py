"""Versions of a node: each has a checkpoint of its own, and one of them is in force.

A rebuild writes the next version beside the one that readers see, and then takes its place. For a
view the store says which version is in force, so the switch is one transaction.

Invariant: a checkpoint belongs to one version, and a version's rows come from its checkpoint alone.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from headwater.errors import UsageError
from headwater.node import Node
from headwater.pipeline import Pipeline
from headwater.sinks.views.store import ViewStore


@dataclass(frozen=True)
class Version:
    """One version of a node."""

    number: int
    home: Path

    @property
    def start(self) -> str:
        """Where it began to read: a place in every input, as text."""
        path = self.home / "start"
        return path.read_text() if path.exists() else "earliest"


class Versions:
    """The versions of a pipeline's nodes."""

    def __init__(self, pipeline: Pipeline, store: ViewStore):
        self._home, self._store = pipeline.home, store
        self._elsewhere = pipeline.views is not None

    def current(self, node: Node) -> Version:
        """Return the version in force."""
        published = [number for number, shown in self._known(node).items() if shown]
        return self._version(node, published[0] if published else 1)

    def next(self, node: Node, start: str = "earliest") -> Version:
        """Return a version to be built beside the others, from a place on."""
        if node.kind != "view" or node.store is not None or self._elsewhere:
            raise UsageError(
                f"{node.title} cannot be built anew",
                detail="only views in the pipeline's own store have versions",
            )
        made = self._version(node, max(self._known(node), default=0) + 1)
        shutil.rmtree(made.home, ignore_errors=True)  # what a rebuild left that was broken off
        made.home.mkdir(parents=True)
        (made.home / "start").write_text(start)
        return made

    def publish(self, node: Node, version: Version) -> None:
        """Put a version in force, and remove all older ones."""
        self._store.publish(node.name, version.number)
        for number in self._known(node):
            if number != version.number:
                self._store.drop(node.name, number)
                shutil.rmtree(self._version(node, number).home, ignore_errors=True)

    def _known(self, node: Node) -> dict[int, bool]:
        if node.kind != "view":
            return {}
        try:
            return self._store.versions(node.name)
        except UsageError:  # it has never run
            return {}

    def _version(self, node: Node, number: int) -> Version:
        return Version(number, self._home / "nodes" / node.name / f"v{number}")
