"""The public suite over a Delta Lake table, as a program: ``warehouse_suite.py VARIANT DIRECTORY``.

The library of Delta Lake has threads, and refuses to work in a process that was forked after them; and the
suite forks. So the process that forks never calls it: what it does with a sink, and what it reads, a child
does for it.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import traceback
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from headwater.sinks.sink import Batch, Sink
from headwater.sinks.warehouse import sink as warehouse
from headwater.sinks.warehouse.sink import WarehouseSink
from headwater.testing.sink_suite import KEY, SCHEMA, TargetUnderTest, checks

MAIN = os.getpid()


class ChildSink(Sink):
    """A sink that works in a child process."""

    def __init__(self, make: Callable[[], Sink]):
        asked_out, asked_in = os.pipe()
        answer_out, answer_in = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(asked_in)
            os.close(answer_out)
            _serve(make, os.fdopen(asked_out, "rb"), os.fdopen(answer_in, "wb"))
        os.close(asked_out)
        os.close(answer_in)
        self._ask, self._hear = os.fdopen(asked_in, "wb"), os.fdopen(answer_out, "rb")

    def begin(self) -> int:
        return int(self._call("begin"))

    def commit(self, batch: Batch) -> bool:
        return bool(self._call("commit", batch))

    def receipt(self) -> str:
        return str(self._call("receipt"))

    def resume(self, receipt: str) -> str | None:
        found: str | None = self._call("resume", receipt)
        return found

    def close(self) -> None:
        self._ask.close()
        self._hear.close()
        os.waitpid(self._child, 0)

    def _call(self, name: str, *arguments: Any) -> Any:
        pickle.dump((name, arguments), self._ask)
        self._ask.flush()
        result = pickle.load(self._hear)
        if isinstance(result, BaseException):
            raise result
        return result


def _serve(make: Callable[[], Sink], asked: Any, answers: Any) -> None:
    try:
        with make() as sink:
            while True:
                name, arguments = pickle.load(asked)
                try:
                    result = getattr(sink, name)(*arguments)
                except Exception as error:
                    result = error
                pickle.dump(result, answers)
                answers.flush()
    finally:
        os._exit(0)


def in_child(read: Callable[[], Any]) -> Any:
    """Call a function in a child, and return what it returns."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(into, pickle.dumps(read()))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as answer:
        data = answer.read()
    os.waitpid(child, 0)
    return pickle.loads(data)


def visible(directory: Path, history: bool) -> list[dict[str, Any]]:
    """Return the current rows, after a look at whether the versions of each key follow one another."""
    from deltalake import DeltaTable

    rows: list[dict[str, Any]] = DeltaTable(directory).to_pyarrow_table().to_pylist()
    if not history:
        return rows
    keys = {row["k"] for row in rows}
    for key in keys:
        versions = sorted((row for row in rows if row["k"] == key), key=lambda row: row["valid_from"])
        assert all(one["valid_to"] <= other["valid_from"] for one, other in pairwise(versions))
        assert [row["is_current"] for row in versions[:-1]] == [False] * (len(versions) - 1)
        assert versions[-1]["is_current"] == (versions[-1]["valid_to"] is None)
    return [row for row in rows if row["is_current"]]


def saved(directory: Path) -> Callable[[], None]:
    backup = directory.with_name(f"{directory.name}-backup")
    shutil.copytree(directory, backup)

    def restore() -> None:
        shutil.rmtree(directory)
        shutil.move(backup, directory)

    return restore


def target(directory: Path, history: bool) -> TargetUnderTest:
    make = partial(WarehouseSink, directory, SCHEMA, KEY, history=history)

    def opened() -> Sink:
        return ChildSink(make) if os.getpid() == MAIN else make()

    with opened() as sink:
        sink.begin()
    return TargetUnderTest(
        opened, lambda: in_child(partial(visible, directory, history)), partial(saved, directory)
    )


def main(variant: str, directory: str) -> None:
    warehouse.COMPACT = 3  # so that merging of files is among the steps
    for check in checks():
        name = getattr(check, "__name__", "check")
        check(target(Path(directory) / name, variant == "history"))
        print(name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
