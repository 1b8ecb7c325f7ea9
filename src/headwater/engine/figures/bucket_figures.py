"""How a node's state is spread over its buckets, as the newest manifest says.

Invariant: nothing is changed, and the pipeline may run meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from headwater.engine.files.home_files import HomeFiles
from headwater.engine.home import notes
from headwater.engine.state.state_manifests import StateManifest, manifest_numbers
from headwater.engine.stored_home import STATE, state_files
from headwater.errors import SinkUnavailable
from headwater.values.json_ready import JsonReady

_MOST = 3


@dataclass(frozen=True)
class BucketFigures(JsonReady):
    """Over how many buckets a state is spread, how large it is, and the largest of them."""

    count: int
    state_bytes: int
    largest: tuple[tuple[int, int], ...]
    """Numbers of buckets, and their bytes; the largest first."""


def read_buckets(home: Path, store: str | None) -> BucketFigures | None:
    """Return the buckets of a version of a node; None where it has no state."""
    if not (home / "state").is_dir() if store is None else notes.read(home / STATE) is None:
        return None
    try:
        return _newest(state_files(home, store))
    except SinkUnavailable:  # a store that is away: the rest is told
        return None


def _newest(files: HomeFiles) -> BucketFigures | None:
    for number in sorted(manifest_numbers(files.sizes()), reverse=True):
        try:
            manifest = StateManifest.from_json(json.loads(files.listed(f"{number}.json")))
        except FileNotFoundError:  # the node goes on, and has just removed it
            continue
        if manifest.batch is not None:
            return _figures(manifest)
    return None


def _figures(manifest: StateManifest) -> BucketFigures:
    sizes = sorted(((meta.size, number) for number, meta in manifest.buckets.items()), reverse=True)
    largest = tuple((number, size) for size, number in sizes[:_MOST])
    return BucketFigures(manifest.count, sum(size for size, _ in sizes), largest)
