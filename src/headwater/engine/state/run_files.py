"""Runs of operators' memory as files: small ones among the chunks of a step, large ones mapped.

Invariant: a file that is mapped has one table, and is never changed.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.engine.exchange import blobs
from headwater.engine.files.home_files import HomeFiles
from headwater.engine.state.chunk_files import Chunks, new_name
from headwater.operators.memory.run import Stretch


class StateRunFiles:
    """The files of one node's runs; small tables are put where the chunks of a step are."""

    def __init__(self, files: HomeFiles, chunks: Chunks):
        self._files, self._chunks = files, chunks
        self.bytes_read = 0

    def put(self, table: pa.Table) -> Stretch:
        """Store a table that is read back whole."""
        return self._chunks.put(blobs.encode(table))

    def put_mapped(self, table: pa.Table) -> Stretch:
        """Store a table in a file of its own."""

        def write(file: pa.NativeFile) -> None:
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table.combine_chunks())

        name = new_name()
        return Stretch(name, self._files.create_mapped(name, write))

    def get(self, stretch: Stretch) -> pa.Table:
        """Return a table that was stored, in memory."""
        data = self._chunks.get(stretch)
        self.bytes_read += len(data)
        return blobs.decode(data)

    def map(self, stretch: Stretch) -> pa.Table:
        """Return a table that was stored to be mapped."""
        return pa.ipc.open_stream(self._files.map(stretch.file)).read_all()
