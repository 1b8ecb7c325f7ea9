"""The manifests of a node's state: which chunks its buckets are made of, after each micro-batch.

The driver lists the chunks of all buckets in one file, the manifest, per micro-batch before the results of
that micro-batch are committed, and retains the manifests of the last few: a micro-batch that is repeated
begins from the manifest before it.

Manifests are numbered, and each is committed under the number after the last one that its runner knows, if
none has it yet. A runner that takes over begins with a mark, a manifest without buckets: so the number that
the one before would take next is taken, and that one is fenced. Marks stay when what follows them is
removed, so a runner that wakes after any time finds its number taken.

Invariant: a manifest is there whole or not at all; once a micro-batch is committed, its manifest and the
chunks that it names are durable; and no manifest follows one that its writer has not seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.engine.files.home_files import HomeFiles
from headwater.engine.home import notes
from headwater.engine.state import chunk_files
from headwater.engine.state.bucket import BucketMeta
from headwater.engine.state.chunk_files import new_name
from headwater.errors import Fenced, HeadwaterError

RETAINED = 3
"""Micro-batches whose manifests are retained; the last one alone can be repeated, however often."""
MARKS = 1000
"""Marks that are retained: how many runners later the number of one that was replaced is still taken."""

_MANIFEST = re.compile(r"(\d+)\.json")
_FORMER = re.compile(r"\d+\.\d+\.json")
_CHUNK = re.compile(r"[0-9a-f]{16}")

Buckets = dict[int, BucketMeta]


@dataclass(frozen=True)
class StateManifest:
    """The buckets after a micro-batch; a mark has none, and no micro-batch."""

    batch: int | None
    buckets: Buckets
    trimmed: bool
    """Whether manifests of earlier micro-batches were removed: then there was a state before the oldest."""
    count: int
    """Over how many buckets the keys are spread; a mark tells it of a state that has no micro-batch yet."""

    def to_json(self) -> dict[str, Any]:
        """Return the form that is stored; its name makes it one that no other runner would write."""
        buckets = {number: meta.to_json() for number, meta in self.buckets.items()}
        facts = {"batch": self.batch, "trimmed": self.trimmed, "count": self.count}
        return {"id": new_name(), **facts, "buckets": buckets}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> StateManifest:
        """Read what ``to_json`` has written."""
        buckets = {int(number): BucketMeta.from_json(meta) for number, meta in stored["buckets"].items()}
        return cls(stored["batch"], buckets, stored["trimmed"], stored["count"])


class StateManifests:
    """The states of one version of a node."""

    def __init__(self, files: HomeFiles):
        self.files = files
        """Where the manifests are, and the chunks."""
        self._manifests: dict[int, StateManifest] = {}
        self._marks: list[int] = []
        self._sizes: dict[str, int] = {}
        self._unchecked: set[int] = set()
        self._last, self._trimmed, self._initial_count = 0, False, 1

    def begin(self, count: int = 1) -> None:
        """Take over from any runner before, and remove the chunks that no manifest names.

        ``count`` is over how many buckets a state that is not there yet is spread.
        """
        self._initial_count = count
        self.files.make()
        while not self._take_over():  # another has committed, or taken over, since its manifests were read
            pass
        # Those that were there before the mark: what a runner that has taken over since stores is not.
        self._sweep({name for name in self._sizes if _CHUNK.fullmatch(name)})

    def _take_over(self) -> bool:
        """Read what is there, and put a mark behind it; tell whether nobody was faster."""
        self._sizes = self.files.sizes()
        self._check_format()
        numbers = manifest_numbers(self._sizes)
        try:
            read = {number: self._read(number) for number in numbers}
        except FileNotFoundError:
            return False  # removed by one who goes on meanwhile
        self._last = max(numbers, default=0)
        self._trimmed = any(each.trimmed for each in read.values())
        self._marks = [number for number, each in read.items() if each.batch is None]
        self._manifests = {number: each for number, each in read.items() if each.batch is not None}
        self._unchecked = set(self._manifests)
        if read:  # the first micro-batch may have been tried by the runner before: it is repeated alike
            self._initial_count = read[min(read)].count
        return self._append(StateManifest(None, {}, self._trimmed, self._initial_count))

    def before(self, batch: int) -> Buckets:
        """Return the buckets as they were before a micro-batch."""
        number = self._number_before(batch)
        return {} if number is None else self._checked(number)

    def count_before(self, batch: int) -> int:
        """Return over how many buckets the keys were spread before a micro-batch, and are in it."""
        number = self._number_before(batch)
        return self._initial_count if number is None else self._manifests[number].count

    def _number_before(self, batch: int) -> int | None:
        found = [(_batch(each), number) for number, each in self._manifests.items() if _batch(each) < batch]
        if not found and self._trimmed:
            location = self.files.location
            raise HeadwaterError(f'the state before batch {batch} is no longer kept in "{location}"')
        return max(found)[1] if found else None

    def _checked(self, number: int) -> Buckets:
        """Return a manifest; one that an earlier runner wrote, and that counts, must have all its chunks.

        One that does not count may lack some after a power loss, as it names what was not committed.
        """
        buckets = self._manifests[number].buckets
        if number in self._unchecked:
            stored = [chunk for meta in buckets.values() for chunk in meta.stored]
            chunk_files.check(self.files.location, self._sizes, stored)
            self._unchecked.discard(number)
        return buckets

    def commit(self, batch: int, changed: Mapping[int, BucketMeta]) -> None:
        """Note the buckets as they are after a micro-batch, given those that it has changed."""
        self._commit(batch, {**self.before(batch), **changed}, self.count_before(batch))

    def rescale(self, count: int, buckets: Buckets) -> None:
        """Note the state after the last micro-batch once more, as it is in another number of buckets.

        The one before it is retained, in as many buckets as it was: a micro-batch is repeated in these.
        """
        self._commit(self.last_batch, buckets, count)

    @property
    def last_batch(self) -> int:
        """The last micro-batch of which there is a state; -1 where there is none."""
        return max(map(_batch, self._manifests.values()), default=-1)

    def _commit(self, batch: int, buckets: Buckets, count: int) -> None:
        number, outdated = self._last + 1, self._outdated(batch)
        retained = {batch, *(each.batch for key, each in self._manifests.items() if key not in outdated)}
        trimmed = self._trimmed or any(self._manifests[key].batch not in retained for key in outdated)
        manifest = StateManifest(batch, buckets, trimmed, count)
        if not self._append(manifest):
            raise Fenced(
                "another runner has taken over this node",
                detail=f'its state in "{self.files.location}" has gone on without this runner',
                hint="let this runner end: the other goes on from the last batch",
            )
        self._manifests[number], self._trimmed = manifest, trimmed
        self._trim(outdated)

    def _append(self, manifest: StateManifest) -> bool:
        """Commit a manifest under the next number; tell whether nobody else has taken it."""
        data = json.dumps(manifest.to_json()).encode()
        if not self.files.commit(f"{self._last + 1}.json", data):
            return False
        self._last += 1
        return True

    def _outdated(self, batch: int) -> list[int]:
        """Return what one of a micro-batch outdates: those too long ago, and earlier ones of the same."""
        newest = {each.batch: number for number, each in sorted(self._manifests.items())}
        newest[batch] = self._last + 1
        retained = {newest[each] for each in sorted(map(_number, newest))[-RETAINED:]}
        return [number for number in self._manifests if number not in retained]

    def _trim(self, outdated: Iterable[int]) -> None:
        """Remove outdated manifests, and the chunks that they alone name; of marks the oldest."""
        chunk_names = _files(*(self._manifests.pop(number) for number in outdated))
        marks, self._marks = self._marks[:-MARKS], self._marks[-MARKS:]
        self.files.remove(f"{number}.json" for number in [*outdated, *marks])
        self._sweep(chunk_names)

    def _sweep(self, candidates: set[str]) -> None:
        """Remove those of some files of chunks that no manifest names any more."""
        self.files.remove(candidates - _files(*self._manifests.values()))

    def _check_format(self) -> None:
        """Refuse manifests of a release that did not number them: they would be taken for none."""
        former = next(filter(_FORMER.fullmatch, self._sizes), None)
        if former is not None:
            raise notes.damaged(f"{self.files.location}/{former}", "an earlier release has written it")

    def _read(self, number: int) -> StateManifest:
        name = f"{number}.json"
        try:
            return StateManifest.from_json(json.loads(self.files.listed(name)))
        except (ValueError, KeyError, TypeError) as error:
            raise notes.damaged(f"{self.files.location}/{name}", str(error)) from None


def manifest_numbers(names: Iterable[str]) -> list[int]:
    """Return the numbers of manifests among names of files, in order."""
    return sorted(int(match[1]) for match in map(_MANIFEST.fullmatch, names) if match)


def _batch(manifest: StateManifest) -> int:
    return _number(manifest.batch)


def _number(batch: int | None) -> int:
    assert batch is not None, "a mark is of no micro-batch"
    return batch


def _files(*manifests: StateManifest) -> set[str]:
    return {chunk.file for each in manifests for meta in each.buckets.values() for chunk in meta.stored}
