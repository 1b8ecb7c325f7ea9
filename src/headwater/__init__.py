"""Headwater turns an application's writes into live, correct, derived data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater import clock
    from headwater.errors import HeadwaterError
    from headwater.log import Consumer, Log, Position, Producer, Topic
    from headwater.log.open import open
    from headwater.operators import agg, joins, tables, windows
    from headwater.operators.doors import dedup, latest, scan
    from headwater.pipeline import Pipeline

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

_PLACES = {
    "headwater": ("clock",),
    "headwater.errors": ("HeadwaterError",),
    "headwater.log": ("Consumer", "Log", "Position", "Producer", "Topic"),
    "headwater.log.open": ("open",),
    "headwater.operators": ("agg", "joins", "tables", "windows"),
    "headwater.operators.doors": ("dedup", "latest", "scan"),
    "headwater.pipeline": ("Pipeline",),
}
"""Where each name is. It is looked up when it is first used: each process of Spark's that reads a log
starts by importing this package, and needs few of them."""


def __getattr__(name: str) -> Any:
    for place, names in _PLACES.items():
        if name in names:
            found = _found(place, name)
            globals()[name] = found
            return found
    raise AttributeError(f'module "headwater" has no attribute "{name}"')


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def _found(place: str, name: str) -> Any:
    if place in ("headwater", "headwater.operators"):  # a module
        return import_module(f"{place}.{name}")
    return getattr(import_module(place), name)
