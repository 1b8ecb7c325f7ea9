"""Headwater turns an application's writes into live, correct, derived data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater import clock
    from headwater.errors import HeadwaterError
    from headwater.log import Consumer, Log, Position, Producer, Topic
    from headwater.log.open import open
    from headwater.operators.aggregates import agg
    from headwater.pipeline.pipeline import Pipeline
    from headwater.transforms import joins, tables, windows
    from headwater.transforms.rows import dedup, latest, scan

__all__ = [
    "Consumer",
    "HeadwaterError",
    "Log",
    "Pipeline",
    "Position",
    "Producer",
    "Topic",
    "agg",
    "clock",
    "dedup",
    "joins",
    "latest",
    "open",
    "scan",
    "tables",
    "windows",
]

_MODULES = {
    "agg": "headwater.operators.aggregates.agg",
    "clock": "headwater.clock",
    "joins": "headwater.transforms.joins",
    "tables": "headwater.transforms.tables",
    "windows": "headwater.transforms.windows",
}
_PLACES = {
    "headwater.errors": ("HeadwaterError",),
    "headwater.log": ("Consumer", "Log", "Position", "Producer", "Topic"),
    "headwater.log.open": ("open",),
    "headwater.transforms.rows": ("dedup", "latest", "scan"),
    "headwater.pipeline.pipeline": ("Pipeline",),
}
"""Where each name is. It is looked up when it is first used: each process of Spark's that reads a log
starts by importing this package, and needs few of them."""


def __getattr__(name: str) -> Any:
    found = _found(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def _found(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    for place, names in _PLACES.items():
        if name in names:
            return getattr(import_module(place), name)
    raise AttributeError(f'module "headwater" has no attribute "{name}"')
