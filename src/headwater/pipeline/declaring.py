"""From a user's arguments to a declaration, or to an error that names the user's line.

Invariant: what is wrong with a declaration in itself is found here, at once and without Spark; a
declaration that is returned needs no second look.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headwater import schema as schemas
from headwater import topic as topics
from headwater.durations import MICROSECOND, interval
from headwater.errors import HeadwaterError, PipelineError, UsageError, nearest
from headwater.names import parts
from headwater.pipeline.node import ON_ERROR, Declaration, Node, Source, SourceLine, Table
from headwater.pipeline.statement import is_query
from headwater.views.opening import check_store

Key = str | Sequence[str] | None
IDLE = timedelta(seconds=10)
MAX_AHEAD = timedelta(minutes=10)
"""More than a clock drifts that is looked after, and less than any mistake in a time zone."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_ONLY: dict[str, tuple[str, ...]] = {
    "partitions": ("stream",),
    "event_time": ("stream",),
    "store": ("view",),
    "order": ("view",),
}
"""Settings that not every kind of node has."""


@contextmanager
def told_at(place: SourceLine) -> Iterator[None]:
    """Let every error of the block name the user's line."""
    try:
        yield
    except HeadwaterError as error:
        if isinstance(error, PipelineError) and error.place:
            raise
        told = PipelineError(error.message, place=str(place), detail=error.detail, hint=error.hint)
        raise told from None


def source(
    name: str, schema: str | pa.Schema, place: SourceLine, *, timing: Mapping[str, Any], **given: Any
) -> Source:
    """Return a source, checked; ``timing`` has its lateness, idle and max_ahead, None where not given."""
    with told_at(place):
        common = _topic("source", name, schema, given)
        _check_timed(f'source "{name}"', common, timing)
        return Source(name=name, file=place.file, line=place.line, **_timing(**timing), **common)


def _timing(lateness: Any, idle: Any, max_ahead: Any) -> dict[str, Any]:
    """Read how a source tells time."""
    return {
        "lateness": timedelta() if lateness is None else length_or_zero(lateness),
        "idle": None if idle is None else interval(idle),
        "max_ahead": None if max_ahead is None else interval(max_ahead),
    }


def table(name: str, schema: str | pa.Schema, place: SourceLine, *, idle: Any, **given: Any) -> Table:
    """Return a table, checked."""
    with told_at(place):
        common = _topic("table", name, schema, given)
        _check_timed(f'table "{name}"', common, {"idle": idle})
        length = None if idle is None else interval(idle)
        return Table(name=name, file=place.file, line=place.line, idle=length, **common)


def _check_timed(title: str, common: Mapping[str, Any], timing: Mapping[str, Any]) -> None:
    """Refuse settings of time where there is none."""
    setting = next((key for key, value in timing.items() if value is not None), None)
    if common["event_time"] is None and setting is not None:
        hint = 'name its TIMESTAMP column, as in event_time="at"'
        raise PipelineError(f"{title} has {setting} but no event_time", hint=hint)


def node(kind: Any, function: Callable[..., Any], place: SourceLine, *, key: Key, **settings: Any) -> Node:
    """Return the node of a function, checked."""
    with told_at(place):
        name = function.__name__
        made = Node(
            name=name,
            kind=kind,
            file=place.file,
            line=place.line,
            upstreams=_parameters(kind, function),
            function=function,
            description=inspect.getdoc(function) or "",
            key=_columns(f'{kind} "{name}"', key),
            **settings,
        )
        _check_node(made)
        return made


def query(kind: Any, name: str, statement: str, place: SourceLine, *, key: Key, **settings: Any) -> Node:
    """Return the node of a SQL query, checked; its upstreams are known when all names are."""
    with told_at(place):
        title = f'{kind} "{name}"'
        if kind not in ("view", "stream"):
            hint = nearest(str(kind), ("view", "stream"))
            raise PipelineError(f'kind is "view" or "stream", not "{kind}"', hint=hint)
        if not isinstance(statement, str) or not is_query(statement):
            hint = "write one statement that begins with SELECT, WITH, FROM, TABLE or VALUES"
            raise PipelineError(f"{title} is not a query", detail=f"{statement!s:.60}", hint=hint)
        given = {"key": _columns(title, key), **settings}
        made = Node(name=name, kind=kind, file=place.file, line=place.line, statement=statement, **given)
        _check_node(made)
        return made


def function_of(decorated: object) -> Callable[..., Any]:
    """Return the function below a user's own decorators, or refuse what is none."""
    below = inspect.unwrap(decorated) if callable(decorated) else decorated
    if inspect.isfunction(below):
        return below
    raise PipelineError(
        f"a node is a function, not a {type(decorated).__name__}",
        hint="declare it with def; its parameters are named after what it reads",
    )


def _topic(kind: str, name: str, schema: str | pa.Schema, given: dict[str, Any]) -> dict[str, Any]:
    """Check what sources and tables have in common: a topic with its columns."""
    title = f'{kind} "{name}"'
    check_name(kind, name)
    parsed, key = schemas.read(schema), _columns(title, given["key"])
    if kind == "table" and not key:
        raise _no_key(title)
    event_time, topic = given["event_time"], given["topic"] if given["topic"] is not None else name
    for column in (*key, *([event_time] if event_time is not None else [])):
        if column not in parsed.names:
            hint = nearest(str(column), parsed.names) or "its columns: " + ", ".join(parsed.names)
            raise PipelineError(f'{title} has no column "{column}"', hint=hint)
    topics.create(topic, parsed, key=key, event_time=event_time)  # for all its other rules
    return {"schema": parsed, "key": key, "event_time": event_time, "topic": topic}


def check_name(kind: str, name: object) -> None:
    """Refuse a name that could be no parameter of a function, nor a name in SQL."""
    if isinstance(name, str) and _NAME.fullmatch(name) and not keyword.iskeyword(name):
        return
    hint = "it becomes the parameter of functions: use letters, digits and _"
    if kind in ("source", "table") and isinstance(name, str) and _NAME.fullmatch(re.sub("[.-]", "_", name)):
        hint += f', and topic="{name}" if that is what the log has'
    raise PipelineError(f'invalid {kind} name "{name!s:.220}"', hint=hint)


def _parameters(kind: str, function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of what a function reads: its parameters."""
    title = f'{kind} "{function.__name__}"'
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


def _check_node(made: Node) -> None:
    check_name(made.kind, made.name)
    if made.topic is not None:
        topics.check_name("topic", made.topic)
    if not made.upstreams and made.statement is None:
        raise no_upstream(made)
    if made.kind == "view" and not made.key:
        raise _no_key(made.title)
    if made.on_error not in ON_ERROR:
        hint = nearest(str(made.on_error), ON_ERROR) or "use " + " or ".join(f'"{each}"' for each in ON_ERROR)
        raise PipelineError(f'{made.title} has an unknown on_error "{made.on_error}"', hint=hint)
    _check_settings(made)


def _check_settings(made: Node) -> None:
    for setting, kinds in _ONLY.items():
        if getattr(made, setting) is not None and made.kind not in kinds:
            raise PipelineError(f"{made.title} takes no {setting}", hint=f"only a {kinds[0]} has one")
    if made.store is not None:
        check_store(made.store)
    if made.order is not None and not (isinstance(made.order, str) and made.order):
        raise PipelineError(
            f"order of {made.title} cannot be {made.order!r:.60}", hint="name one column of its result"
        )
    count = made.partitions
    if count is not None and (type(count) is not int or not 1 <= count <= 1024):
        raise PipelineError(f"{made.title} has 1 to 1024 partitions, not {count!r:.60}")
    if made.event_time is not None and not (isinstance(made.event_time, str) and made.event_time):
        raise PipelineError(f"event_time of {made.title} cannot be {made.event_time!r:.60}")


def no_upstream(made: Declaration) -> PipelineError:
    """Return the error for a node that reads nothing."""
    hint = "name what it reads as its parameters"
    if isinstance(made, Node) and made.statement is not None:
        hint = "select from a source, a table or a stream"
    return PipelineError(f"{made.title} has no upstream", place=made.place, hint=hint)


def _no_key(title: str) -> PipelineError:
    return PipelineError(
        f"{title} has no key", hint='name the column(s) that tell its rows apart, as in key="id"'
    )


def _columns(title: str, key: Key) -> tuple[str, ...]:
    """Read ``"a,b"``, ``["a", "b"]`` or None."""
    if key is None:
        return ()
    names = parts(key) if isinstance(key, str) else key
    if not isinstance(names, Sequence) or not all(isinstance(each, str) and each for each in names):
        raise PipelineError(
            f"key of {title} cannot be {key!r:.60}", hint='name its columns, as in key="shop,day"'
        )
    if len(set(names)) < len(names):
        raise PipelineError(f"key of {title} has a column twice", detail=", ".join(names))
    return tuple(names)


def length_or_zero(text: str | timedelta) -> timedelta:
    """Read an interval that may be zero, which ``interval`` refuses."""
    if text == timedelta():
        return timedelta()
    with suppress(UsageError):
        if isinstance(text, str) and interval(f"{text} 1 microsecond") == MICROSECOND:
            return timedelta()
    return interval(text)
