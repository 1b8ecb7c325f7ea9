"""Operations at work: each in a thread, those that need Spark in a child process.

Invariant: of one pipeline at most one child works at a time, of all pipelines at most ``CHILDREN``; when the
server stops, they are stopped and waited for; what a child prints is bounded.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from headwater.closing import Closing
from headwater.errors import HeadwaterError
from headwater.pipeline.pipeline import Pipeline
from headwater.serve.http.problem import HttpProblem
from headwater.serve.operations.error_tail import ErrorTail
from headwater.serve.operations.operation_store import OperationRecord, OperationStore

CHILDREN = 2
COMMAND = (sys.executable, "-m", "headwater.serve.operations.child")
ANSWER_BYTES = 1 << 20
STOP_SECONDS = 10.0
PROGRESS_SECONDS = 1.0
Progress = Callable[[], float | None]
_log = logging.getLogger("headwater")


@dataclass(frozen=True)
class SparkWork:
    """What a child is to do."""

    kind: str
    pipeline: Pipeline
    node: str
    to: str | None = None
    progress: Progress = lambda: None

    def asked(self) -> str:
        """Return the line that the child is asked by."""
        own = self.pipeline
        where = {"file": own.file, "pipeline": own.name, "home": str(own.home), "log": own.log}
        return json.dumps({**where, "kind": self.kind, "node": self.node, "to": self.to}) + "\n"


class Jobs(Closing):
    """The operations of a server."""

    def __init__(self, store: OperationStore, command: Sequence[str] = COMMAND):
        """``command`` starts a child, which is asked and answers as ``child.py`` does."""
        self.store, self._command = store, command
        self._lock = threading.Lock()
        self._children: dict[str, subprocess.Popen[bytes] | None] = {}
        self._threads = set[threading.Thread]()
        self._closed = False

    def run(self, kind: str, target: str, work: Callable[[], Any], message: str) -> str:
        """Begin something that is done in this process; return its id."""
        record = self._added(kind, target, message)
        self._begin(lambda: self._finish(record, work))
        return record.id

    def spawn(self, work: SparkWork, message: str) -> str:
        """Begin something that is done by a child; return its id. Refused while the pipeline has one."""
        name = work.pipeline.name
        with self._lock:
            if name in self._children:
                hint = "wait for its end: GET /v1/operations tells how it does"
                raise HttpProblem(409, f'pipeline "{name}" has an operation under way already', hint=hint)
            if len(self._children) >= CHILDREN:
                raise HttpProblem(429, "too many operations are under way", hint="wait for one to end")
            self._children[name] = None
        try:
            record = self._added(work.kind, f"{name}/{work.node}", message)
            self._begin(lambda: self._finish(record, lambda: self._child(record, work), name))
        except BaseException:
            self._children.pop(name, None)
            raise
        return record.id

    def close(self) -> None:
        """Stop every child, wait for all that is under way, and release the file of it."""
        self.stop()
        self.store.close()

    def stop(self) -> None:
        """Stop every child, and wait for all that is under way; nothing begins any more."""
        with self._lock:
            self._closed = True
            children, threads = [each for each in self._children.values() if each], list(self._threads)
        for child in children:
            _stop(child)
        for thread in threads:
            thread.join()

    def _added(self, kind: str, target: str, message: str) -> OperationRecord:
        record = OperationRecord(uuid.uuid4().hex, kind, target, message=message, started=time.time())
        self.store.add(record)
        return record

    def _begin(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="operation")
        with self._lock:
            if self._closed:
                raise HttpProblem(503, "the server is being stopped")
            self._threads = {each for each in self._threads if each.is_alive()} | {thread}
        thread.start()

    def _finish(self, record: OperationRecord, work: Callable[[], Any], child: str | None = None) -> None:
        try:
            done = replace(record, state="done", progress=1.0, result=work(), ended=time.time())
        except HeadwaterError as error:
            told = {"message": error.message, "detail": error.detail, "hint": error.hint}
            done = replace(record, state="failed", error=told, ended=time.time())
        except Exception:  # of ours: no text of it is for those who ask
            told = {"message": "it failed", "detail": None, "hint": "the server's output tells more"}
            done = replace(record, state="failed", error=told, ended=time.time())
            raise
        finally:
            if child is not None:
                with self._lock:
                    self._children.pop(child, None)
            self.store.update(done)

    def _child(self, record: OperationRecord, work: SparkWork) -> Any:
        with ErrorTail() as tail:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": tail.input}
            child = subprocess.Popen(self._command, **pipes, start_new_session=True)  # type: ignore[call-overload]
        with child:
            with self._lock:
                self._children[work.pipeline.name] = child
                closed = self._closed
            if closed:
                _stop(child)
            with suppress(BrokenPipeError):
                child.stdin.write(work.asked().encode())
                child.stdin.flush()
            answer = _Answer(child)
            while not answer.ended(PROGRESS_SECONDS):
                self.store.update(replace(record, progress=_fraction(work.progress)))
            try:
                return answer.result()
            except NoAnswer as error:
                _log.warning('operation "%s" of "%s": %s\n%s', record.kind, record.target, error, tail.text())
                raise


class NoAnswer(HeadwaterError):
    """A child has ended, or was ended, before it had answered."""


class _Answer:
    """What a child prints, read as it comes, up to a bound."""

    def __init__(self, child: subprocess.Popen[bytes]):
        self._child, self._text = child, b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def ended(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> Any:
        """Return the result, or raise the error; what is neither is a child that was killed."""
        try:
            told = json.loads(self._text)
        except ValueError:
            code = self._child.wait()
            hint = "the server's log has what it printed last"
            raise NoAnswer(
                "the operation ended without an answer", detail=f"exit code {code}", hint=hint
            ) from None
        if "error" in told:
            error = told["error"]
            raise HeadwaterError(error["message"], detail=error["detail"], hint=error["hint"])
        return told["result"]

    def _read(self) -> None:
        assert self._child.stdout is not None and self._child.stdin is not None
        self._text = self._child.stdout.read(ANSWER_BYTES)
        self._child.stdout.close()  # one that tells more is ended by that
        with suppress(BrokenPipeError):
            self._child.stdin.close()


def _fraction(progress: Progress) -> float | None:
    try:
        return progress()
    except (HeadwaterError, OSError):  # it cannot be told just now
        return None


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Ask a child to stop, and end it with all it has started if it does not."""
    with suppress(ProcessLookupError):
        child.send_signal(signal.SIGINT)
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
