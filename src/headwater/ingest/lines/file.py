"""The lines of a file into a topic, each once, whatever is killed; a growing file is followed, through
rotations.

The number of a line is its sequence in the log, and the place after lines that are durable is noted in the
log too. After a kill the file is read again from there, under the same numbers, and what the log has already
is left out. Invariant: a place is noted after its lines are durable, and a new generation of the file before
any of its lines is sent; so no line is lost or stored twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from headwater.errors import SourceRefused
from headwater.ingest.address import IngestAddress
from headwater.ingest.ingest import Ingest
from headwater.ingest.lines import followed_file
from headwater.ingest.lines.followed_file import FilePlace
from headwater.ingest.lines.framing import NewlineSplitter
from headwater.ingest.lines.generation import PREFIX, OpenFile, prefix_digest
from headwater.ingest.lines.line_writer import LineDestination, LineWriter

PIECE = 1 << 20
IDLE_SECONDS = 0.2
"""How often a file that has no more is looked at."""
SETTLED_SECONDS = 1.0
"""How long a writer may still use a file that was renamed."""
NOTED_SECONDS = 1.0
"""How often it is noted how far a file was read."""


class FileLines(Ingest):
    """Reads a file to its end, or follows it."""

    def __init__(self, to: LineDestination, path: Path, *, follow: bool):
        address = str(IngestAddress("file", path=path))
        super().__init__(to.log, to.name, address)
        self._to, self._path, self._follow = to, path, follow
        self._place, self._was_begun = self._resumed(address)
        self._durable = self._place
        self._splitter = NewlineSplitter()
        self._settled_at = time.monotonic()
        self._read, self._prefix = 0, b""

    def progress(self) -> Mapping[str, Any]:
        """Return up to where everything is durable."""
        return self._durable.to_dict()

    def _resumed(self, address: str) -> tuple[FilePlace, bool]:
        saved = self.checkpoints.load()
        if saved is None or not saved.progress:
            return followed_file.begin(self._path), False
        if saved.address != address:
            raise SourceRefused(
                f'"{self.name}" reads {saved.address}, not {address}', hint="give this one another --name"
            )
        return FilePlace.of(saved.progress), True

    def _run(self, stop: threading.Event) -> None:
        with LineWriter(self._to, self.counts, stop) as writer:
            if writer.sequence and not self._was_begun:
                raise SourceRefused(
                    f'what "{self.name}" has noted of "{self._path}" is gone',
                    detail="lines that it wrote before are there: they would be stored again",
                    hint="begin anew with the file as it is, under another --name",
                )
            self._check_placing(writer)
            opened = self._await_file(stop)
            while opened is not None:
                with closing(opened):
                    opened = self._read_generation(opened, writer, stop)
            self._settle(writer)
            writer.flush()

    def _check_placing(self, writer: LineWriter) -> None:
        """Refuse to send lines again that would not go where they are: the log could not leave them out."""
        was, now = self._place.partitions, self._partitions()
        if was and was != now and writer.sequence > self._place.line:
            raise SourceRefused(
                f'lines of "{self._path}" may be stored twice, or not at all',
                detail=f'topic "{self._to.topic}" had {was} partitions when they were sent, and has {now}: '
                f"lines {self._place.line:,} to {writer.sequence - 1:,} are in the log, all or some of them",
                hint="compare them with the file; then begin anew with what is missing, under another --name",
            )

    def _partitions(self) -> int:
        return self._to.log.topic(self._to.topic).partitions

    def _await_file(self, stop: threading.Event) -> OpenFile | None:
        while not stop.is_set():
            opened = followed_file.find(self._path, self._place)
            if opened is not None:
                return self._entered(opened, resumed=self._place.offset > 0)
            if not self._follow:
                raise SourceRefused(f'there is no file "{self._path}"', hint="--follow waits for it")
            self.checkpoint()
            stop.wait(IDLE_SECONDS)
        return None

    def _entered(self, opened: OpenFile, *, resumed: bool) -> OpenFile:
        """Go on in a generation: which one it is is noted before any of its lines is sent."""
        resumption = replace(self._place, inode=opened.inode)
        place = resumption if resumed else followed_file.entered(opened, self._place)
        self._durable = self._place = replace(place, partitions=self._partitions())
        self._splitter.rest()
        self._read = self._place.offset
        self._prefix = opened.read(0, min(self._read, PREFIX))
        self.checkpoint(force=True)
        return opened

    def _step(self, data: bytes) -> None:
        """Keep in mind how far the generation was read, and by what it is known."""
        self._prefix += data[: PREFIX - len(self._prefix)]
        self._read += len(data)

    def _read_generation(
        self, opened: OpenFile, writer: LineWriter, stop: threading.Event
    ) -> OpenFile | None:
        """Read a generation until another one follows, or the work ends; return the one that follows."""
        replaced_at: float | None = None
        while not stop.is_set():
            data = opened.read(self._read, PIECE)
            if not opened.holds(self._read, prefix_digest(self._prefix)):  # emptied
                return self._emptied(opened, writer)
            if data:
                self._step(data)
                self._take(self._splitter.feed(data), writer)
                continue
            self._settle(writer)
            if self._is_current(opened):
                if not self._follow:
                    self._take(self._splitter.rest(), writer)
                    break
            else:
                replaced_at = replaced_at or time.monotonic()
                if not self._follow or time.monotonic() - replaced_at >= SETTLED_SECONDS:
                    return self._next(opened, writer)
            stop.wait(IDLE_SECONDS)
        return None

    def _take(self, lines: list[bytes], writer: LineWriter) -> None:
        """Write lines, and step over them; from time to time it is noted how far."""
        if not lines:
            return
        writer.write(lines, str(self._path), self._place.line)
        end = self._read - self._splitter.held
        digest = prefix_digest(self._prefix[:end])  # not of the file: it may be another one by now
        self._place = replace(self._place, offset=end, line=self._place.line + len(lines), digest=digest)
        if time.monotonic() - self._settled_at >= NOTED_SECONDS:
            self._settle(writer)

    def _settle(self, writer: LineWriter) -> None:
        """Make what was sent durable, and then note how far that is."""
        if self._durable != self._place:
            writer.flush()
            self._place = replace(self._place, partitions=self._partitions())
            self._durable, self._settled_at = self._place, time.monotonic()
            self.checkpoint(force=True)
        else:
            self.checkpoint()

    def _is_current(self, opened: OpenFile) -> bool:
        """Tell whether the name still means this file; while it means none, it does."""
        try:
            return self._path.stat().st_ino == opened.inode
        except FileNotFoundError:
            return True

    def _next(self, opened: OpenFile, writer: LineWriter) -> OpenFile | None:
        """Go on with the generation that follows one that is done with."""
        self._take(self._splitter.rest(), writer)
        self._settle(writer)
        self._place = followed_file.passed(opened, self._place)
        opened.close()
        return self._following(writer)

    def _emptied(self, opened: OpenFile, writer: LineWriter) -> OpenFile | None:
        """Go on with the copy of a file that was emptied; without one, what was not read is gone, and
        counted."""
        self._settle(writer)
        opened.close()
        copy = followed_file.copy_of(self._path, self._place)
        if copy is not None:
            return self._entered(copy, resumed=True)
        if self._place.offset:
            self.counts.add(truncations=1)
        return self._following(writer)

    def _following(self, writer: LineWriter) -> OpenFile | None:
        following = followed_file.following(self._path, self._place)
        while following is None and self._follow and not self.stopping.wait(IDLE_SECONDS):
            following = followed_file.following(self._path, self._place)
        return None if following is None else self._entered(following, resumed=False)
