"""All that an operator remembers in a bucket: its containers by their names, and a few numbers.

Invariant: what is opened from what was saved is what was saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.operators.memory.run import Stretch
from headwater.operators.memory.sorted_runs import Limits, RunFiles, SortedRuns, StoredRuns


@dataclass(frozen=True)
class StoredMemory:
    """What is known of an operator's memory without reading it."""

    containers: Mapping[str, StoredRuns] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def stretches(self) -> list[Stretch]:
        """All that it is stored in."""
        return [each for stored in self.containers.values() for each in stored.stretches]

    def to_json(self) -> list[Any]:
        """Return the form that is stored."""
        return [self.containers, self.numbers]

    @classmethod
    def from_json(cls, stored: list[Any]) -> StoredMemory:
        """Read what ``to_json`` has written."""
        containers, numbers = stored
        return cls({name: StoredRuns.from_json(each) for name, each in containers.items()}, numbers)


class OperatorMemory:
    """Containers by their names, and objects of which one attribute each is a number to be stored."""

    def __init__(
        self, containers: Mapping[str, SortedRuns], numbers: Mapping[str, tuple[object, str]] | None = None
    ):
        self.containers, self._numbers = containers, numbers or {}

    @property
    def size(self) -> int:
        """The bytes that it has in memory."""
        return sum(runs.size for runs in self.containers.values())

    def numbers(self) -> dict[str, int]:
        """Return the numbers as they are."""
        return {name: getattr(*number) for name, number in self._numbers.items()}

    def save(self, files: RunFiles, limits: Limits | None = None) -> StoredMemory:
        """Store what is new, and return by what it is opened again."""
        return StoredMemory(
            {name: runs.save(files, limits) for name, runs in self.containers.items()},
            self.numbers(),
        )

    def open(self, stored: StoredMemory, files: RunFiles) -> None:
        """Be, while empty, what was saved."""
        for name, each in stored.containers.items():
            self.containers[name].open(each, files)
        for name, (holder, attribute) in self._numbers.items():
            setattr(holder, attribute, stored.numbers[name])
