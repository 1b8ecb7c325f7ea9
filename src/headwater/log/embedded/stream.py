"""Records of one partition from an offset on, wherever they lie: archive, then segments.

Invariant: ``offset`` is always the next one to be read, also over the gaps that compaction leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from headwater.errors import DamagedLog, OffsetLost
from headwater.log.embedded import archive
from headwater.log.embedded.catalog import StoredTopic
from headwater.log.embedded.failures import unusable
from headwater.log.embedded.partition import reader

FAR = 1 << 62
_Archived = tuple[int, Iterator[tuple[pa.RecordBatch, int]]]
_NOTHING_HERE = pa.RecordBatch.from_arrays([], names=[])


class RecordReader:
    """Reads batches of one partition; never blocks."""

    def __init__(self, root: Path, stored: Callable[[], StoredTopic], number: int, offset: int, meta: bool):
        self.number = number
        self._root, self._stored, self._meta = root, stored, meta
        self._frames = reader.FrameReader(stored().partition(number), offset)
        self._archived: _Archived | None = None

    @property
    def offset(self) -> int:
        """The next offset to be read."""
        return self._frames.offset

    def next(self, end: int = FAR) -> pa.RecordBatch | None:
        """Return the next batch before ``end``, or None if there is nothing now."""
        while self.offset < end:
            batch = self._from_archive(end) if self._archived else self._from_log(end)
            if batch is None or len(batch):
                return batch
        return None

    def until(self, end: int) -> Iterator[pa.RecordBatch]:
        """Yield what is there before ``end``, and close."""
        try:
            while (batch := self.next(end)) is not None:
                yield batch
        finally:
            self.close()

    def close(self) -> None:
        """Release the files."""
        self._archived = None
        self._frames.close()

    def _from_log(self, end: int) -> pa.RecordBatch | None:
        start = self.offset
        try:
            frames = self._frames.frames()
        except (OffsetLost, DamagedLog):
            self._archived = self._find_archived(end)
            if self._archived is None:
                raise
            return _NOTHING_HERE
        except FileNotFoundError as error:
            self._stored()  # says so if the topic is gone
            raise unusable(self._root, error) from None
        except OSError as error:
            raise unusable(self._root, error) from None
        if not frames:
            return None
        return reader.records(frames, self._stored().topic, self.number, (start, end), self._meta)

    def _find_archived(self, end: int) -> _Archived | None:
        stored = self._stored()
        for archived in archive.listing(archive.partition_directory(self._root, stored, self.number)):
            if archived.base <= self.offset < archived.end:
                return archived.end, archive.read(archived, stored.topic, (self.offset, end), self._meta)
        return None

    def _from_archive(self, end: int) -> pa.RecordBatch:
        assert self._archived is not None
        file_end, batches = self._archived
        waiting, self._archived = self._archived, None  # also after an error
        batch, offset = next(batches, (_NOTHING_HERE, min(file_end, end)))
        if batch is not _NOTHING_HERE:
            self._archived = waiting
        self._frames.offset = offset
        return batch
