"""Which keys the rows of a step have most, by a sample: a key that has many is what a bucket waits for.

Invariant: a step looks at no more than ``SAMPLED`` rows of a bucket, and nothing depends on what it finds.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.operators.columns import one_array

SAMPLED, FEWEST = 500, 50
"""Rows that are looked at, and how many there must be: among few, none stands out."""
_MOST, _LONGEST = 3, 60


def key_sample(rows: pa.Table, key: Sequence[str]) -> dict[str, int]:
    """Return the most frequent keys, as text, with how many of the rows that were looked at they have."""
    if not key or len(rows) < FEWEST:
        return {}
    # From all over the rows, as those that came together are often of one key.
    places = range(0, len(rows), max(1, len(rows) // SAMPLED))[:SAMPLED]
    some = rows.select(list(key)).take(pa.array(places))
    counts: dict[str, int] = {}
    for values in zip(*(one_array(column).to_pylist() for column in some.columns), strict=True):
        text = ", ".join(map(str, values))[:_LONGEST]
        counts[text] = counts.get(text, 0) + 1
    often = sorted(((count, text) for text, count in counts.items() if count > 1), reverse=True)[:_MOST]
    return {text: count for count, text in often}


def sample_size(rows: int) -> int:
    """Return how many of so many rows are looked at."""
    return min(rows, SAMPLED) if rows >= FEWEST else 0
