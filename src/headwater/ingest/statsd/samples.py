"""What a line of StatsD says: its kinds, and the columns of samples and of aggregates.

Invariant: a sample is one value of one line; tags are a set of texts, whatever order a client writes them in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

KINDS = ("counter", "gauge", "timer", "histogram", "distribution", "set")
COUNTER, GAUGE, TIMER, HISTOGRAM, DISTRIBUTION, SET = range(6)
CODES = {b"c": COUNTER, b"g": GAUGE, b"ms": TIMER, b"h": HISTOGRAM, b"d": DISTRIBUTION, b"s": SET}
SAMPLED = (COUNTER, TIMER, HISTOGRAM, DISTRIBUTION)
"""Kinds of which a client may send a part, and say which: each sample then stands for several."""
SAMPLES = pa.schema(
    [
        ("metric", pa.string()),
        ("kind", pa.int8()),
        ("tags", pa.string()),
        ("value", pa.float64()),
        ("member", pa.string()),
        ("rate", pa.float64()),
        ("delta", pa.bool_()),
    ]
)
"""Parsed samples: ``tags`` in order, with commas between them; ``member`` is a set's value; ``delta`` is a
gauge's."""
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NUMBER = re.compile(NUMBER)
EXTENSIONS_REMEMBERED = 1 << 16


class Extension(NamedTuple):
    """What follows a line's kind: ``|@0.1|#env:prod``."""

    rate: float = 1.0
    tags: str = ""
    is_taken: bool = True
    """False if it carries a time of its own, which would belong to another interval."""


@dataclass(frozen=True)
class ParsedBlock:
    """What was in a block of lines; lines that are no samples are counted."""

    samples: pa.RecordBatch
    lines: int = 0
    malformed: int = 0
    not_taken: int = 0
    """Events, service checks, and samples with a time of their own."""


@lru_cache(EXTENSIONS_REMEMBERED)
def parse_extension(text: bytes) -> Extension | None:
    """Return what follows a kind, or None if it is malformed.

    >>> parse_extension(b"|@0.5|#b:2,a:1,b:2")
    Extension(rate=0.5, tags='a:1,b:2', is_taken=True)
    """
    found = Extension()
    for field in text.split(b"|")[1:]:
        mark, rest = field[:1], field[1:].decode()
        if mark == b"@":
            rate = number(rest)
            if rate is None or not 0 < rate <= 1:
                return None
            found = found._replace(rate=rate)
        elif mark == b"#":
            tags = sorted({tag for tag in rest.split(",") if tag})
            found = found._replace(tags=",".join(tags))
        elif mark == b"T" and rest.isdecimal():
            found = found._replace(is_taken=False)
        elif not field.startswith((b"c:", b"e:", b"card:")):  # a container, which agents add: no tag
            return None
    return found


def number(text: str) -> float | None:
    """Return a decimal number, or None for anything else, infinities among it."""
    if not _NUMBER.match(text) or text.endswith("\n"):
        return None
    value = float(text)
    return value if abs(value) != float("inf") else None
