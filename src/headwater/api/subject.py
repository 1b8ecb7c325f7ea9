"""Which pipeline a call is about: one that the caller has, or the one that a file declares."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headwater.errors import UsageError
from headwater.log.open import absolute_url
from headwater.pipeline.declaration import Declaration as Declaration
from headwater.pipeline.declaration import InputTopic
from headwater.pipeline.loading import load
from headwater.pipeline.node import Node as Node
from headwater.pipeline.node import ViewNode
from headwater.pipeline.pipeline import Pipeline

DEFAULT_LOG = "file:./data"
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


def log_of(pipelines: Sequence[Pipeline], log: str | None = None) -> str:
    """Return the URL of the one log that pipelines have; without any, that of the log that is named."""
    if not pipelines:
        return absolute_url(log or DEFAULT_LOG)
    if log is not None:
        raise UsageError("a pipeline names its log itself", hint="leave out the log, or the pipelines")
    urls = {absolute_url(each.log) for each in pipelines}
    if len(urls) > 1:
        raise UsageError(
            "a server serves one log, and these pipelines have several", hint="start one for each"
        )
    return urls.pop()


def checked(subject: Subject) -> Pipeline:
    """Return the pipeline that is meant, or raise the first thing that keeps it from fitting together."""
    pipeline = pipeline_of(subject)
    pipeline.check()
    return pipeline


def part_of(pipeline: Pipeline, name: str) -> Declaration:
    """Return a source, table or node of a pipeline."""
    return pipeline[name]  # says so if there is none


def view_names(pipeline: Pipeline) -> list[str]:
    """Return the names of the views of a pipeline."""
    return [node.name for node in pipeline.nodes if isinstance(node, ViewNode)]


def timed_topic(part: Declaration) -> str | None:
    """Return the topic of a source or table whose records have an event time; None for any other part."""
    return part.topic if isinstance(part, InputTopic) and part.event_time is not None else None


def node_of(pipeline: Pipeline, name: str, refused: str) -> Node:
    """Return a node of a pipeline; of a source or a table it is said what is refused."""
    found = pipeline[name]  # says so if there is none
    if not isinstance(found, Node):
        raise UsageError(f"{found.title} {refused}", hint="name a view, a stream or a sink")
    return found
