"""Which sink a node's batches go to: the one place where the engine decides it, by the type of the node.

A new type of node is registered here, next to the others. Invariant: a sink belongs to one version of a
node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path

import pyarrow as pa

from headwater.log import Log
from headwater.pipeline.node import Node, SinkNode, StreamNode, ViewNode
from headwater.sinks.sink import Sink
from headwater.sinks.topic import TopicSink
from headwater.views.store import Store


@dataclass(frozen=True)
class SinkContext:
    """What sinks are made of beside their nodes: those of one pipeline."""

    pipeline: str
    home: Path
    log: Log
    store: Store


@singledispatch
def open_sink(node: Node, columns: pa.Schema, version: int, context: SinkContext) -> Sink:
    """Open the sink of a version of a node, which shuts out any other runner."""
    raise NotImplementedError(f"where the rows of {node.title} go")


@open_sink.register
def _topic(node: StreamNode, columns: pa.Schema, version: int, context: SinkContext) -> Sink:
    return TopicSink(context.log, node.topic, f"{context.pipeline}.{node.name}")


@open_sink.register
def _view(node: ViewNode, columns: pa.Schema, version: int, context: SinkContext) -> Sink:
    sink = context.store.sink(node.name, columns, node.key, version=version)
    context.store.index_by(node.name, node.order, version=version)
    return sink


@open_sink.register
def _target(node: SinkNode, columns: pa.Schema, version: int, context: SinkContext) -> Sink:
    return node.open_target(columns, version, context.home)
