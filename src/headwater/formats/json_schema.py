"""JSON whose schema is in a registry: JSON after the schema's id.

The columns of the topic say what a value must be; the registered schema is not asked. Invariant: as for JSON.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.errors import RowError
from headwater.formats import wire
from headwater.topic import Topic
from headwater.values import jsonl
from headwater.values.bulk import Bad, Rows


def decode(values: Sequence[bytes], topic: Topic) -> Rows:
    """Return the rows of JSON objects, and those that do not fit."""
    bodies: list[bytes] = []
    places: list[int] = []
    bad: list[Bad] = []
    for index, value in enumerate(values):
        try:
            bodies.append(wire.split(value).body)
            places.append(index)
        except RowError as error:
            bad.append((index, error))
    batch, misfits = jsonl.decode(bodies, topic)
    return batch, sorted([*bad, *((places[at], error) for at, error in misfits)], key=lambda each: each[0])
