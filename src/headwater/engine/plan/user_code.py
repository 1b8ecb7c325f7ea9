"""Calls node functions, and says whose code it was when one fails."""

from __future__ import annotations

import inspect
import re
import sys
import threading
import traceback
from collections.abc import Mapping

from pyspark import cloudpickle
from pyspark.sql import DataFrame

from headwater.engine.plan import refusal_messages
from headwater.errors import HeadwaterError, PipelineError
from headwater.operators.spec import setting_aside
from headwater.pipeline.node import Node

_NAMING = threading.Lock()
"""Queries run side by side in one session, whose names of views are one another's."""


def pickle_by_value(node: Node) -> None:
    """Let a node's code travel to the workers with all that its file defines."""
    for module in map(inspect.getmodule, (node.code.function, *node.code.user_functions)):
        name = module.__name__ if module is not None else "headwater."
        if name in sys.modules and not name.startswith("headwater."):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def call(node: Node, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the DataFrame that a node's function, or its SQL, makes of its upstreams."""
    before = setting_aside.set(node.on_error == "dead_letter")
    try:
        result = _sql(node, frames) if node.code.function is None else node.code.function(**frames)
    except HeadwaterError as error:
        raise _at(node, error) from error
    except (Exception, SystemExit) as error:
        raise _failed(node, error) from error
    finally:
        setting_aside.reset(before)
    if not isinstance(result, DataFrame):
        raise PipelineError(
            f"{node.title} returned {type(result).__name__}, not a DataFrame",
            hint="does it end with `return …`?",
            location=node.location,
        )
    return result


def _sql(node: Node, frames: Mapping[str, DataFrame]) -> DataFrame:
    assert node.code.statement is not None
    with _NAMING:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        return next(iter(frames.values())).sparkSession.sql(node.code.statement)


def _at(node: Node, error: HeadwaterError) -> HeadwaterError:
    if isinstance(error, PipelineError):
        return error
    return PipelineError(
        f"{node.title}: {error.message}",
        detail=error.detail,
        hint=error.hint,
        location=_location(node, error),
    )


def _location(node: Node, error: BaseException) -> str:
    """Return the line of the user's own file where it went wrong."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == node.file]
    return f"{node.location.rpartition(':')[0]}:{own[-1].lineno}" if own else node.location


def _failed(node: Node, error: BaseException) -> PipelineError:
    """Return what a function raised, in our own words where they say more than Spark's."""
    location, text = _location(node, error), str(error)
    for sign, refusal in _STREAM_REFUSALS.items():
        if sign in text:
            return PipelineError(
                f"{node.title} {refusal.what}", detail=refusal.detail, hint=refusal.hint, location=location
            )
    if isinstance(error, SystemExit):
        return PipelineError(
            f"{node.title} ended the program when it was called",
            detail=f"SystemExit: {error.code}",
            hint="return a DataFrame; to refuse to go on, raise an error that says why",
            location=location,
        )
    return PipelineError(
        f"{node.title} failed when it was called: {type(error).__name__}",
        detail=one_line(error),
        location=location,
    )


_STREAM_REFUSALS = {
    "Queries with streaming sources must be executed with writeStream": refusal_messages.LOOKED_AT,
    "CALL_ON_STREAMING_DATASET_UNSUPPORTED": refusal_messages.LOOKED_AT,
    "INVALID_SUBQUERY_EXPRESSION.STREAMING_QUERY": refusal_messages.SUBQUERY,
}
"""The refusal behind what Spark says of streams, by a part of its message."""
_JAVA = re.compile(r"^: [\w.$]+: (.+)$", re.MULTILINE)


def one_line(error: BaseException) -> str:
    """Return what an exception says in one line: without Spark's codes, and without Java's names.

    >>> one_line(ValueError("[UNRESOLVED_COLUMN] A column `a` is not there. SQLSTATE: 42703; line 1"))
    'A column `a` is not there.'
    """
    text = str(error).strip()
    java = _JAVA.search(text)
    first = java[1] if java else text.splitlines()[0] if text else type(error).__name__
    return re.sub(r"^\[[A-Z0-9_.]+\] *| *SQLSTATE: .*$", "", first.strip())
