"""A target that can be built anew beside the one that readers see, and then takes its place.

The first version is where the target says; a later one is built elsewhere in the target, by a sink like any
other. Invariant: readers see one version, whole, before and after the switch; a kill at any moment leaves
the one that they see untouched, and whatever an unfinished rebuild left is removed by the next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from headwater.sinks.sink import Sink


class TargetVersions(ABC):
    """The versions of a target; nothing is connected to before it is asked."""

    @abstractmethod
    def published(self) -> int:
        """Return the version that readers see; 1 where there is none yet."""

    @abstractmethod
    def open(self, schema: pa.Schema, version: int) -> Sink:
        """Return the sink of a version: the published one, or one that is built beside it.

        The sink of a version that another has replaced is ``Fenced`` when it begins, or commits.
        """

    @abstractmethod
    def prepare(self, version: int) -> None:
        """Make room for a version that is to be built; refuse a target that is not ours to replace."""

    @abstractmethod
    def publish(self, schema: pa.Schema, version: int) -> None:
        """Let readers see a version from now on, at once, and remove all others."""


@dataclass(frozen=True)
class LateVersions(TargetVersions):
    """Versions that are made when they are asked for: what they need may not be installed before that."""

    make: Callable[[], TargetVersions]

    def published(self) -> int:
        """Return the version that readers see."""
        return self.make().published()

    def open(self, schema: pa.Schema, version: int) -> Sink:
        """Return the sink of a version."""
        return self.make().open(schema, version)

    def prepare(self, version: int) -> None:
        """Make room for a version."""
        self.make().prepare(version)

    def publish(self, schema: pa.Schema, version: int) -> None:
        """Let readers see a version."""
        self.make().publish(schema, version)
