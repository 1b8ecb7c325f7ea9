"""Which pipeline a call is about: one that the caller has, or the one that a file declares."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.errors import UsageError
from headwater.pipeline.loading import load
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline

Subject = Pipeline | str | os.PathLike[str]
"""A pipeline, or the path of its file: ``shop.py``, or ``shop.py:audit`` where it declares several."""


@dataclass(frozen=True)
class SparkOptions:
    """Where Spark runs, and with which settings of its own."""

    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def pipeline_of(subject: Subject) -> Pipeline:
    """Return the pipeline that is meant, whether it fits together or not."""
    return subject if isinstance(subject, Pipeline) else load(subject)


def checked(subject: Subject) -> Pipeline:
    """Return the pipeline that is meant, or raise the first thing that keeps it from fitting together."""
    pipeline = pipeline_of(subject)
    pipeline.check()
    return pipeline


def node_of(pipeline: Pipeline, name: str, refused: str) -> Node:
    """Return a node of a pipeline; of a source or a table it is said what is refused."""
    found = pipeline[name]  # says so if there is none
    if not isinstance(found, Node):
        raise UsageError(f"{found.title} {refused}", hint="name a view, a stream or a sink")
    return found
