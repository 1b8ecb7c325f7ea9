"""The data of ``examples/flights`` for tests: its modules, and what is heard in parts of some hours."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from headwater import Pipeline
from headwater.pipeline.loading import load

PLACE = Path(__file__).parents[2] / "examples" / "flights"
LATENESS = timedelta(hours=6)


class Part(NamedTuple):
    """What is heard in some hours."""

    weather: pa.Table
    flights: pa.Table


@cache
def module(name: str) -> Any:
    """A file of the example, under a name of its own: other examples have files of the same name."""
    spec = spec_from_file_location(f"flights_{name}", PLACE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def pipeline() -> Pipeline:
    return load(PLACE / "flights.py")


@cache
def heard(days: int | None) -> tuple[Any, ...]:
    """What is heard, hour by hour."""
    return tuple(module("feed").hours(days))


def parts(days: int | None, hours: int) -> list[Part]:
    """What is heard, some hours at a time."""
    told = heard(days)
    return [
        Part(
            _table("weather", (hour.weather for hour in some)),
            _table("flights", (hour.flights for hour in some)),
        )
        for some in (told[start : start + hours] for start in range(0, len(told), hours))
    ]


def planes() -> pa.Table:
    return _table("planes", [module("feed").planes()])


def whole(days: int | None) -> dict[str, pa.Table]:
    """All rows of the first days of the year."""
    [part] = parts(days, len(heard(days)))
    return {"flights": part.flights, "weather": part.weather, "planes": planes()}


def _table(name: str, frames: Any) -> pa.Table:
    rows = pd.concat(list(frames))
    return pa.Table.from_pandas(rows, preserve_index=False).cast(pipeline()[name].schema)
