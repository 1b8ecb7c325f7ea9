"""The versions of a Delta Lake table: the next is built in a directory beside it, and taken over by a commit.

The table stays where it is, with its history: a commit makes its current rows those of the new version.
Invariant: readers see the rows before that commit, or those after it; the directory beside it is gone then.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from headwater.sinks import crash
from headwater.sinks.sink import Sink
from headwater.sinks.versions import TargetVersions
from headwater.sinks.warehouse.sink import WarehouseSink, published


@dataclass(frozen=True)
class WarehouseVersions(TargetVersions):
    """The versions of the table in a directory."""

    directory: Path
    key: str | tuple[str, ...]
    history: bool = True

    def published(self) -> int:
        """Return the version that readers see."""
        return published(self.directory)

    def open(self, schema: pa.Schema, version: int) -> Sink:
        """Return the sink of a version: of the table itself, or of the one that is built beside it."""
        if version > max(self.published(), 1):
            return self._beside(schema, version)
        return WarehouseSink(self.directory, schema, self.key, history=self.history, version=version)

    def prepare(self, version: int) -> None:
        """Remove the directory that an unfinished rebuild left."""
        shutil.rmtree(self._directory_beside(version), ignore_errors=True)

    def publish(self, schema: pa.Schema, version: int) -> None:
        """Make the current rows of the table those of a version, in one commit."""
        if self.published() != version:
            crash.point("warehouse: before the switch")
            table = WarehouseSink(self.directory, schema, self.key, history=self.history)
            table.replace(self._beside(schema, version))
            crash.point("warehouse: switched")
        self.prepare(version)

    def _beside(self, schema: pa.Schema, version: int) -> WarehouseSink:
        # What was before is the history of the table itself.
        return WarehouseSink(
            self._directory_beside(version), schema, self.key, history=False, version=version
        )

    def _directory_beside(self, version: int) -> Path:
        return self.directory.with_name(f"{self.directory.name}@{version}")
