"""What needs Spark, in a process of its own that a server starts: ``python -m`` and the name of this module.

It is asked by one line of JSON on its standard input and answers with one on its standard output. It ends
when its input does: when the server has ended, however that was. Invariant: it only works on the pipeline
that the server means, never on another that a changed file declares.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

from headwater.api.positions import parse_start
from headwater.api.rebuild import rebuild, reset
from headwater.api.verify import verify
from headwater.errors import HeadwaterError, UsageError
from headwater.pipeline.loading import load
from headwater.pipeline.pipeline import Pipeline


def run_verify(pipeline: Pipeline, node: str, to: str | None) -> dict[str, Any]:
    """Return what a verification of a node has found."""
    [verdict] = verify(pipeline, node)
    return verdict.to_dict()


def run_rebuild(pipeline: Pipeline, node: str, to: str | None) -> dict[str, Any]:
    """Build a node anew, and return its version."""
    return rebuild(pipeline, node).to_dict()


def run_reset(pipeline: Pipeline, node: str, to: str | None) -> dict[str, Any]:
    """Let a view begin anew from a position, and return its version."""
    return reset(pipeline, node, parse_start(to or "earliest")).to_dict()


WORK: Mapping[str, Callable[[Pipeline, str, str | None], dict[str, Any]]] = {
    "verify": run_verify,
    "rebuild": run_rebuild,
    "reset": run_reset,
}


def answer(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Do what is asked, and return the result or the error."""
    try:
        pipeline = load(asked["file"], asked["pipeline"])
        if (str(pipeline.home), pipeline.log) != (asked["home"], asked["log"]):
            raise UsageError(
                f'the file of pipeline "{pipeline.name}" declares another log or home than the server has',
                hint="start the server again",
            )
        return {"result": WORK[asked["kind"]](pipeline, asked["node"], asked["to"])}
    except HeadwaterError as error:
        return {"error": {"message": error.message, "detail": error.detail, "hint": error.hint}}
    except KeyboardInterrupt:
        return {"error": {"message": "it was stopped", "detail": None, "hint": None}}


def main() -> None:
    """Answer one question, unless whoever asks goes away."""
    asked = json.loads(_line())
    threading.Thread(target=_watch_for_the_end, daemon=True).start()
    out = os.dup(1)
    os.dup2(2, 1)  # what others print is no answer
    text = json.dumps(answer(asked)).encode()
    os.write(out, text + b"\n")


def _line() -> bytes:
    """Return the first line of the input; by the file itself: a buffer would be in the way at the end."""
    text = b""
    while not text.endswith(b"\n") and (more := os.read(0, 1)):
        text += more
    return text


def _watch_for_the_end() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main()
