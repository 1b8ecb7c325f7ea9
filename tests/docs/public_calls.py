"""What users call, by the name under which docs pages and ``help()`` tell of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import headwater
import headwater.spark
from headwater import agg, clock, dedup, joins, latest, scan, sourcing, tables, windows
from headwater.pipeline import targets
from headwater.testing.harness import Harness
from headwater.transforms.sample import Sample, sample

Calls = dict[str, Callable[..., Any]]


def _methods(kind: type) -> Calls:
    """Return the methods of a class, with those that it inherits."""
    methods = inspect.getmembers(kind, inspect.isfunction)
    return {f"{kind.__name__}.{name}": method for name, method in methods if not name.startswith("_")}


OPERATORS: Calls = {
    "dedup": dedup,
    "latest": latest,
    "scan": scan,
    "windows.tumbling": windows.tumbling,
    "windows.hopping": windows.hopping,
    "windows.sliding": windows.sliding,
    "windows.session": windows.session,
    "joins.within": joins.within,
    "joins.as_of": joins.as_of,
    "joins.lookup": joins.lookup,
    "joins.tables": joins.tables,
    "tables.group": tables.group,
}
AGGREGATES: Calls = {
    f"agg.{name}": getattr(agg, name) for name in agg.__all__ if name not in ("Aggregate", "may_contain")
}
TARGETS: Calls = {
    f"targets.{name}": getattr(targets, name)
    for name in (
        "parquet",
        "postgres",
        "mysql",
        "sqlite",
        "search",
        "cache",
        "warehouse",
        "webhook",
        "mail",
        "push",
        "foreach",
    )
}
PIPELINE: Calls = {"Pipeline": headwater.Pipeline, **_methods(headwater.Pipeline)}
HARNESS: Calls = {"Harness": Harness, **_methods(Harness)}
PUBLIC: Calls = {
    **OPERATORS,
    **AGGREGATES,
    **TARGETS,
    **PIPELINE,
    **HARNESS,
    **_methods(headwater.Log),
    **_methods(headwater.Producer),
    **_methods(headwater.ConditionalProducer),
    **_methods(headwater.Consumer),
    **_methods(sourcing.Decider),
    **_methods(sourcing.Aggregates),
    **_methods(sourcing.ProcessManager),
    **_methods(sourcing.RunningProcess),
    **_methods(sourcing.TimerWorker),
    **_methods(sourcing.UniqueClaims),
    "Decider": sourcing.Decider,
    "ProcessManager": sourcing.ProcessManager,
    "unique": sourcing.unique,
    "sourcing.history": sourcing.history,
    **_methods(Sample),
    **{f"clock.{name}": getattr(clock, name) for name in clock.__all__ if name.islower()},
    "agg.may_contain": agg.may_contain,
    "headwater.open": headwater.open,
    "headwater.spark.register": headwater.spark.register,
    "sample": sample,
    "tables.greatest": tables.greatest,
}


def parameters(call: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that a user gives, without their types."""
    given = inspect.signature(call).parameters.values()
    return [each.replace(annotation=each.empty) for each in given if each.name != "self"]


def parameter_texts(call: Callable[..., Any]) -> list[str]:
    """Return each parameter as a signature shows it."""
    return [str(each).replace("'", '"') for each in parameters(call)]


def signature(name: str, call: Callable[..., Any]) -> str:
    """Return how something is called, as a docs page writes it."""
    return name + str(inspect.Signature(parameters(call))).replace("'", '"')
