"""From a user's arguments to a declaration, or to an error that names the user's line.

Invariant: what is wrong with a declaration in itself is found here, at once and without Spark; a
declaration that is returned needs no second look.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from headwater import schema as schemas
from headwater import topic as topics
from headwater.computed import is_expression
from headwater.errors import PipelineError, nearest
from headwater.names import parts
from headwater.pipeline.declaration import Declaration, InputTopic
from headwater.pipeline.node import ON_ERROR, Node, NodeCode
from headwater.pipeline.settings import (
    InputSettings,
    NodeSettings,
    Origin,
    QuerySettings,
    TopicSettings,
    key_columns,
)
from headwater.pipeline.source_line import SourceLine, errors_at
from headwater.pipeline.statement import is_query

_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


T = TypeVar("T", bound=InputTopic)


def input_topic(
    kind: type[T], name: str, schema: str | pa.Schema, line: SourceLine, settings: InputSettings
) -> T:
    """Return a source or a table, checked."""
    with errors_at(line):
        topic = _topic(kind, name, schema, settings.topic)
        _check_timing(kind.title_of(name), settings)
        return kind(
            name=name,
            file=line.file,
            line=line.line,
            declared=topic,
            key=topic.key,
            timing=settings.timing.read(),
        )


def _check_timing(title: str, settings: InputSettings) -> None:
    """Refuse settings of time where there is no event time."""
    first = settings.timing.first_set
    if settings.topic.event_time is None and first is not None:
        hint = 'name its TIMESTAMP column, as in event_time="at", or write an expression'
        raise PipelineError(f"{title} has {first} but no event_time", hint=hint)


def node(function: Callable[..., Any], line: SourceLine, pipeline: str, settings: NodeSettings) -> Node:
    """Return the node of a function, checked."""
    with errors_at(line):
        name = function.__name__
        upstreams = _parameters(settings.node_type.title_of(name), function)
        code = NodeCode(upstreams, function, description=inspect.getdoc(function) or "")
        return _checked(settings.node(Origin(name, line, pipeline), code), settings)


def coded(code: NodeCode, origin: Origin, settings: NodeSettings) -> Node:
    """Return the node of code that is not a function of the user's, checked."""
    with errors_at(origin.line):
        return _checked(settings.node(origin, code), settings)


def query(kind: str, statement: str, origin: Origin, query_settings: QuerySettings) -> Node:
    """Return the node of a SQL query, checked; its upstreams are known when all names are."""
    with errors_at(origin.line):
        settings = query_settings.of_kind(kind, origin.name)
        if not isinstance(statement, str) or not is_query(statement):
            title = settings.node_type.title_of(origin.name)
            hint = "write one statement that begins with SELECT, WITH, FROM, TABLE or VALUES"
            raise PipelineError(f"{title} is not a query", detail=f"{statement!s:.60}", hint=hint)
        return _checked(settings.node(origin, NodeCode(statement=statement)), settings)


def function_of(decorated: object) -> Callable[..., Any]:
    """Return the function below a user's own decorators, or refuse what is none."""
    below = inspect.unwrap(decorated) if callable(decorated) else decorated
    if inspect.isfunction(below):
        return below
    raise PipelineError(
        f"a node is a function, not a {type(decorated).__name__}",
        hint="declare it with def; its parameters are named after what it reads",
    )


def _topic(
    kind: type[InputTopic], name: str, schema: str | pa.Schema, settings: TopicSettings
) -> topics.Topic:
    """Check what sources and tables have in common, a topic with its columns, and return it."""
    title = kind.title_of(name)
    check_name(kind, name)
    parsed, key = schemas.read(schema), key_columns(title, settings.key)
    if kind.needs_key and not key:
        raise _no_key(title)
    event_time = settings.event_time
    for column in (*key, *([event_time] if event_time is not None else [])):
        if column not in parsed.names and not is_expression(str(column), parsed):
            hint = nearest(str(column), parsed.names) or "its columns: " + ", ".join(parsed.names)
            raise PipelineError(f'{title} has no column "{column}"', hint=hint)
    topic = settings.topic if settings.topic is not None else name
    return topics.create(  # with all its other rules
        topic,
        parsed,
        key=key,
        event_time=event_time,
        cleanup=kind.cleanup,
        metadata=parts(settings.metadata) if isinstance(settings.metadata, str) else settings.metadata,
        producer=settings.producer,
        format=settings.formats.format,
        key_format=settings.formats.key_format,
    )


def check_name(kind: type[Declaration], name: object) -> None:
    """Refuse a name that could be no parameter of a function, nor a name in SQL."""
    if isinstance(name, str) and _NAME.fullmatch(name) and not keyword.iskeyword(name):
        return
    hint = "it becomes the parameter of functions: use letters, digits and _"
    if kind.external and isinstance(name, str) and _NAME.fullmatch(re.sub("[.-]", "_", name)):
        hint += f', and topic="{name}" if that is what the log has'
    raise PipelineError(f'invalid {kind.kind} name "{name!s:.220}"', hint=hint)


def _parameters(title: str, function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of what a function reads: its parameters."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            shown = str(parameter).split(":")[0]
            hint = "name every upstream as a parameter of its own"
            raise PipelineError(f'{title} takes "{shown}", which names no upstream', hint=hint)
        if parameter.kind is parameter.POSITIONAL_ONLY:
            hint = 'upstreams are handed over by name: leave out the "/"'
            raise PipelineError(f'{title} takes "{parameter.name}" by position only', hint=hint)
        if parameter.default is not parameter.empty:
            hint = "a parameter is an upstream; let the function read settings from its module"
            raise PipelineError(f'{title} has a default for parameter "{parameter.name}"', hint=hint)
    return tuple(inspect.signature(function).parameters)


def _checked(node: Node, settings: NodeSettings) -> Node:
    check_name(type(node), node.name)
    if node.written_topic is not None:
        _check_written_topic(node.title, node.written_topic)
    if not node.upstreams and node.code.statement is None:
        raise no_upstream(node)
    if node.needs_key and not node.key:
        raise _no_key(node.title)
    if node.on_error not in ON_ERROR:
        hint = nearest(str(node.on_error), ON_ERROR) or "use " + " or ".join(
            f'"{choice}"' for choice in ON_ERROR
        )
        raise PipelineError(f'{node.title} has an unknown on_error "{node.on_error}"', hint=hint)
    settings.check(node.title)
    return node


def _check_written_topic(title: str, topic: str) -> None:
    """Refuse the name of a topic in which another pipeline would set rows aside: ``PIPELINE.NODE.late``."""
    topics.check_name("topic", topic)
    above, _, end = topic.rpartition(".")
    pipeline, _, node = above.rpartition(".")
    if f".{end}" in topics.SIDE_SUFFIXES and pipeline and _NAME.fullmatch(node):
        rows = "late rows" if end == "late" else "dead letters"
        raise PipelineError(
            f'{title} cannot have the topic "{topic}"',
            detail=f'that is the topic for the {rows} of node "{node}" of a pipeline named "{pipeline}"',
            hint="give the stream or its pipeline another name",
        )


def no_upstream(node: Node) -> PipelineError:
    """Return the error for a node that reads nothing."""
    hint = "name what it reads as its parameters"
    if node.code.statement is not None:
        hint = "select from a source, a table or a stream"
    return PipelineError(f"{node.title} has no upstream", location=node.location, hint=hint)


def _no_key(title: str) -> PipelineError:
    return PipelineError(
        f"{title} has no key", hint='name the column(s) that tell its rows apart, as in key="id"'
    )
