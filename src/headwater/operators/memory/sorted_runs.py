"""Rows by two numbers, in a few sorted runs, in memory and on disk: what all containers are made of.

A container is a log-structured merge tree. What is added lies in memory, in runs of which a new one is
merged with its neighbour while that is not much larger, and is logged when the container is saved. When there
is much of it, it becomes one run on disk, which is mapped, looked into and never read whole; runs on disk are
merged by their size. What has become too old is left out at once, and goes with its run, or when that is
merged.

Invariant: what is found is the same wherever an entry lies, and however runs came about. Rows of equal
numbers are merged in the order in which they came, or stay in it where nothing merges them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.edges import Edge, edge_of
from headwater.operators.memory.entries import Entries, Merge, joined, merged, no_entries
from headwater.operators.memory.found import Found
from headwater.operators.memory.run import Matches, Run, Stretch, positions
from headwater.operators.memory.slots import SlotOf, by_hash

MAJOR, MINOR = "_major", "_minor"
Pair = tuple[int, int]
Useful = Callable[[Entries, bool], Flags]
"""Tells which of some sorted entries are of use still; the flag says that nothing older lies behind them."""
_FANOUT = 4
"""Runs on disk of about one size that are merged into one."""


@dataclass
class Limits:
    """When what is in memory becomes a run, how often it is logged before, and how large a part is."""

    spill_bytes: int = 8 << 20
    logged: int = 64
    part_bytes: int = 256 << 20
    few: int = 2048
    """Rows in memory that new ones are merged with, however few these are: one run is faster than many."""


LIMITS = Limits()


class RunFiles(Protocol):
    """Where runs are stored."""

    def put(self, table: pa.Table) -> Stretch:
        """Store a table that is read back whole."""

    def put_mapped(self, table: pa.Table) -> Stretch:
        """Store a table that is to be mapped."""

    def get(self, stretch: Stretch) -> pa.Table:
        """Return a table that was stored, in memory."""

    def map(self, stretch: Stretch) -> pa.Table:
        """Return a table that was stored to be mapped."""


class StoredRuns(NamedTuple):
    """What is known of a container without reading it: from it, and its files, it is opened again."""

    logged: tuple[Stretch, ...] = ()
    runs: tuple[tuple[Stretch, ...], ...] = ()
    floor: int = NEVER
    minor_floor: int = NEVER

    @property
    def stretches(self) -> list[Stretch]:
        """All that it is stored in."""
        return [*self.logged, *(part for run in self.runs for part in run)]

    @classmethod
    def from_json(cls, stored: list[Any]) -> StoredRuns:
        """Read what JSON has made of it."""
        logged, runs, floor, minor_floor = stored
        return cls(
            tuple(Stretch(*each) for each in logged),
            tuple(tuple(Stretch(*part) for part in run) for run in runs),
            floor,
            minor_floor,
        )


class SortedRuns:
    """Rows found by a range of the first number, by one and a range of the second, or by both."""

    def __init__(
        self,
        empty: pa.Table,
        merge: Merge | None,
        is_gone: Callable[[pa.Table], Flags] | None = None,
        useful: Useful | None = None,
        slots: SlotOf = by_hash,
    ):
        """``is_gone`` tells which merged rows stand for none: left out where nothing lies behind them.

        Without ``merge`` rows of equal numbers are all held; what is not ``useful`` goes when runs merge.
        ``slots`` tells the slots of entries, of which none stands for no row.
        """
        self._none, self._merge, self._is_gone = no_entries(empty), merge, is_gone
        self._names = empty.column_names
        self._useful, self.slots = useful, slots
        self._stored: list[Run] = []
        self._recent: list[Run] = []
        self._held: list[int] = []
        self._fresh: list[Entries] = []
        self._logged: list[Stretch] = []
        self._floor, self._minor_floor = NEVER, NEVER

    def __len__(self) -> int:
        return sum(map(len, self.runs()))

    @property
    def size(self) -> int:
        """The bytes that it has in memory."""
        return sum(run.size for run in self._recent)

    def add(self, entries: Entries) -> None:
        """Add entries, which are merged with those of the same numbers."""
        if not len(entries):
            return
        sorted_once = merged([entries], self._merge)
        self._fresh.append(sorted_once)
        self._add_recent(sorted_once)

    def between(self, first: int, last: int) -> Entries:
        """Return what has a first number from one up to, and without, another."""
        first = max(first, self._floor)
        return self._merged([piece for run in self.runs() for piece in run.between(first, last)])

    def count(self, first: int, last: int) -> int:
        """Return how many parts have a first number from one up to, and without, another."""
        return sum(run.count(max(first, self._floor), last) for run in self.runs())

    def within(self, major: Numbers, first: Numbers, last: Numbers) -> Entries:
        """Return what has one of some first numbers, and a second one in that one's range.

        The ranges of equal first numbers must not overlap.
        """
        order = np.argsort(major, kind="stable")
        order = order[np.searchsorted(major[order], self._floor) :]
        asked = major[order], first[order], last[order]
        return self._merged([piece for run in self.runs() for piece in run.within(*asked)])

    def under(self, major: Numbers) -> Entries:
        """Return all that has one of some first numbers, given once and in order."""
        major = major[major.searchsorted(self._floor) :]
        return self._merged([piece for run in self.runs() for piece in run.under(major)])

    def edge(self, asked: Edge) -> tuple[Entries, Flags]:
        """Return the first entries of each of some first numbers, or the last, and which have no others."""
        found = edge_of(self._parts(), asked)
        entries = self._merged(found.pieces)
        return entries.only(found.reached(entries)), found.whole

    def find(self, major: Numbers, minor: Numbers) -> Found:
        """Return where the newest row of each pair of numbers lies.

        To be called where merging means that the newest counts, and for numbers that were not dropped.
        """
        parts: list[Entries] = []
        owner, position = np.full(len(major), -1), np.zeros(len(major), np.int64)
        left = np.argsort(major)
        major, minor = major[left], minor[left]
        for run in reversed(self.runs()):
            for part, low, high in run.asked(major):
                found = positions(part, major[low:high], minor[low:high])
                hit = np.flatnonzero(found >= 0)
                if len(hit):
                    mine = left[low + hit]
                    owner[mine], position[mine] = len(parts), found[hit]
                    parts.append(part)
            rest = np.flatnonzero(owner[left] < 0)
            if len(rest) < len(left):
                left, major, minor = left[rest], major[rest], minor[rest]
        return Found(parts, owner, position, self._none.rows.schema)

    def matches(self, major: Numbers, first: Numbers, last: Numbers, *columns: str) -> Matches:
        """Return what is in each range, both ends included, of a first number; all columns, or some.

        Ranges may overlap. To be called where nothing merges rows: entries come as they lie, run by run.
        """
        names = list(columns) or self._names
        if self._minor_floor > NEVER:
            first = np.maximum(first, self._minor_floor + 1)
        order = np.argsort(major, kind="stable")
        asked = major[order], first[order], last[order]
        found = [match for run in self.runs() for match in run.matches(*asked, names)]
        if not found:
            none = self._none
            return Matches(none.major, Entries(none.major, none.minor, none.rows.select(names)))
        of = order[np.concatenate([each.of for each in found])]
        return Matches(of, joined([each.entries for each in found]))

    def last_until(self, major: Numbers, until: Numbers) -> Numbers:
        """Return the greatest second number up to one of each first number; NEVER where there is none."""
        order = np.argsort(major, kind="stable")
        found, asked = np.full(len(major), NEVER), (major[order], until[order])
        for run in self.runs():
            found[order] = np.maximum(found[order], run.last_until(*asked))
        return found

    def first_after(self, major: Numbers, after: Numbers) -> Numbers:
        """Return the least second number after one of each first number; FOREVER where there is none."""
        order = np.argsort(major, kind="stable")
        found, asked = np.full(len(major), FOREVER), (major[order], after[order])
        for run in self.runs():
            found[order] = np.minimum(found[order], run.first_after(*asked))
        return found

    def drop(self, before: int) -> None:
        """Forget what has a first number before one."""
        if before <= self._floor:
            return
        self._floor = before
        self._stored = [run for run in self._stored if run.last >= before]
        recent, held = self._recent, self._held
        self._recent, self._held = [], []
        for run, whole in zip(recent, held, strict=True):
            (part,) = run.parts
            if part.major[0] >= before:
                self._recent.append(run)
                self._held.append(whole)
                continue
            cut = int(np.searchsorted(part.major, before))
            left = len(part) - cut
            if left and 2 * left > whole:
                self._push(part.slice(cut, len(part)), whole)
            elif left:  # Taking copies: what has been dropped is held no longer.
                self._push(part.take(np.arange(cut, len(part))))

    def retain(self, after: int) -> None:
        """Forget what has a second number that is not after one; this looks at everything in memory."""
        if after <= self._minor_floor:
            return
        self._minor_floor = after
        parts = [part.only(part.minor > after) for run in self._recent for part in run.parts]
        self._recent, self._held = [], []
        for part in parts:
            if len(part):
                self._push(part)

    def forget(self, until: int) -> None:
        """Forget what has a second number up to one: whole runs now, the rest when runs are merged."""
        if until <= self._minor_floor:
            return
        self._minor_floor = until
        self._stored = [run for run in self._stored if run.last_minor > until]
        recent = zip(self._recent, self._held, strict=True)
        left = [(run, held) for run, held in recent if run.last_minor > until]
        self._recent, self._held = [run for run, _ in left], [held for _, held in left]

    def fading(self) -> int | None:
        """Return the least second number up to which a whole run can be forgotten, where one is known."""
        return min((run.last_minor for run in self.runs() if run.last_minor < FOREVER), default=None)

    def next(self, first: int) -> int | None:
        """Return the least first number that is not before one."""
        first = max(first, self._floor)
        found = [piece for run in self.runs() if run.last >= first for piece in _from(run, first)]
        return min(found, default=None)

    def all(self) -> Entries:
        """Return everything."""
        return self._merged(self._parts())

    def held(self, low: Pair | None, high: Pair | None) -> Entries:
        """Return what is of use from one pair of numbers up to, and without, another; from or to an end."""
        pieces = [piece for run in self.runs() for piece in run.slice(low, high)]
        return self._useful_only(merged(pieces, self._merge), bottom=True) if pieces else self._none

    def majors(self) -> Numbers:
        """Return the first numbers of everything, in no order."""
        return np.concatenate([self._none.major, *(part.major for part in self._parts())])

    def minors(self) -> Numbers:
        """Return the second numbers of everything, in no order."""
        return np.concatenate([self._none.minor, *(part.minor for part in self._parts())])

    def save(self, files: RunFiles, limits: Limits | None = None) -> StoredRuns:
        """Store what was added since it was last saved, and return by what it is opened again."""
        limits = limits or LIMITS
        if self.size > limits.spill_bytes or (self._fresh and self._is_crowded(limits)):
            self._spill(files, limits)
        elif self._fresh:
            fresh = self._fresh[0] if len(self._fresh) == 1 else merged(self._fresh, self._merge)
            self._logged.append(files.put(entries_table(fresh)))
        self._fresh = []
        return StoredRuns(
            tuple(self._logged), tuple(run.stored for run in self._stored), self._floor, self._minor_floor
        )

    def open(self, stored: StoredRuns, files: RunFiles) -> None:
        """Be, while empty, what was saved."""
        self._stored = [Run(tuple(_entries(files.map(part)) for part in run), run) for run in stored.runs]
        for stretch in stored.logged:
            self._add_recent(_entries(files.get(stretch)))
        self._logged = list(stored.logged)
        self.drop(stored.floor)
        self.retain(stored.minor_floor)

    @property
    def floors(self) -> tuple[int, int]:
        """The least first number that is held, and the greatest second number that is forgotten."""
        return self._floor, self._minor_floor

    def runs(self) -> list[Run]:
        """Return what it consists of, the oldest first."""
        return [*self._stored, *self._recent]

    def _parts(self) -> list[Entries]:
        parts = [part for run in self.runs() for part in run.parts]
        cuts = [int(np.searchsorted(part.major, self._floor)) for part in parts]
        return [part.slice(cut, len(part)) for part, cut in zip(parts, cuts, strict=True) if cut < len(part)]

    def _merged(self, pieces: list[Entries]) -> Entries:
        if not pieces:
            return self._none
        found = merged(pieces, self._merge)
        return found.only(found.minor > self._minor_floor) if self._minor_floor > NEVER else found

    def _add_recent(self, entries: Entries) -> None:
        self._push(entries)
        while len(self._recent) > 1 and len(self._recent[-2]) <= max(2 * len(self._recent[-1]), LIMITS.few):
            newer, older = self._recent.pop(), self._recent.pop()
            del self._held[-2:]
            both = self._useful_only(merged([*older.parts, *newer.parts], self._merge), bottom=False)
            if len(both):
                self._push(both)

    def _useful_only(self, found: Entries, bottom: bool) -> Entries:
        """Leave out what is forgotten, or of no use any more."""
        reasons = []
        if self._floor > NEVER:
            reasons.append(found.major >= self._floor)
        if self._minor_floor > NEVER:
            reasons.append(found.minor > self._minor_floor)
        if self._useful is not None:
            reasons.append(self._useful(found, bottom))
        if self._is_gone is not None and bottom:
            reasons.append(~self._is_gone(found.rows))
        return found.only(np.logical_and.reduce(reasons)) if reasons else found

    def _push(self, entries: Entries, held: int | None = None) -> None:
        self._recent.append(Run((entries,)))
        self._held.append(len(entries) if held is None else held)

    def _is_crowded(self, limits: Limits) -> bool:
        """Tell whether so much is logged that it takes longer to read than what has come of it."""
        size = sum(stretch.size for stretch in self._logged)
        return len(self._logged) >= limits.logged or size > max(2 * self.size, limits.spill_bytes // 8)

    def _spill(self, files: RunFiles, limits: Limits) -> None:
        """Make a run on disk of what is in memory, and merge runs of about its size with it."""
        runs, self._recent, self._held, self._logged = self._recent, [], [], []
        while len(self._stored) >= _FANOUT - 1 and _is_small(self._stored, sum(map(len, runs))):
            cut = len(self._stored) - _FANOUT + 1
            runs = [*self._stored[cut:], *runs]
            self._stored = self._stored[:cut]
        run = self._write(self._compacted(runs, limits.part_bytes), files, limits.part_bytes)
        self._stored += [run] if run.parts else []

    def _compacted(self, runs: list[Run], size: int) -> Iterator[Entries]:
        """Yield the entries of runs in order, merged, about as many at a time as a part has."""
        for low, high in between(bounds(runs, size)):
            pieces = [piece for run in runs for piece in run.slice(low, high)]
            if not pieces:
                continue
            found = self._useful_only(merged(pieces, self._merge), bottom=not self._stored)
            if len(found):
                yield found

    def _write(self, pieces: Iterator[Entries], files: RunFiles, size: int) -> Run:
        stored: list[Stretch] = []
        gathered: list[Entries] = []
        for piece in pieces:
            gathered.append(piece)
            if sum(each.size for each in gathered) >= size:
                stored.append(put_part(files, joined(gathered)))
                gathered = []
        if gathered:
            stored.append(put_part(files, joined(gathered)))
        return Run(tuple(_entries(files.map(each)) for each in stored), tuple(stored))


def put_part(files: RunFiles, entries: Entries) -> Stretch:
    """Store a part of a run."""
    return files.put_mapped(entries_table(entries))._replace(last_minor=int(entries.minor.max()))


def _is_small(stored: list[Run], count: int) -> bool:
    """Tell whether the runs that would be merged are about as large as what they are merged with."""
    sizes = [len(run) for run in stored[-_FANOUT + 1 :]]
    return sizes[0] <= sum(sizes[1:]) + count


def _from(run: Run, first: int) -> Iterator[int]:
    for part in run.parts:
        if part.major[-1] >= first:
            yield int(part.major[part.major.searchsorted(first)])
            return


def bounds(runs: list[Run], size: int) -> list[Pair]:
    """Return pairs of numbers between which there is about as much as a part has."""
    rows = sum(map(len, runs))
    bytes_ = sum(part.size for run in runs for part in run.parts)
    step = max(int(size / 4 / max(bytes_ / max(rows, 1), 1)), 1)
    pairs = {
        (int(part.major[at]), int(part.minor[at]))
        for run in runs
        for part in run.parts
        for at in range(step, len(part), step)
    }
    # Each run has marked its own share: as many of them lie between two bounds as there are runs.
    return sorted(pairs)[:: max(len(runs) // 2, 1)]


def between(inner: list[Pair]) -> Iterator[tuple[Pair | None, Pair | None]]:
    """Yield the stretches that bounds part everything into: each from one of them, or an end, to the next."""
    yield from zip([None, *inner], [*inner, None], strict=True)


def entries_table(entries: Entries) -> pa.Table:
    """Return entries in the form that is stored."""
    rows = entries.rows.combine_chunks()
    numbers = [pa.array(entries.major), pa.array(entries.minor)]
    fields = [pa.field(MAJOR, pa.int64()), pa.field(MINOR, pa.int64()), *rows.schema]
    return pa.Table.from_arrays([*numbers, *rows.columns], schema=pa.schema(fields))


def _entries(table: pa.Table) -> Entries:
    major, minor = (table.column(number).to_numpy() for number in range(2))
    return Entries(major, minor, table.select(list(range(2, table.num_columns))))
