"""The commands that run a pipeline, as real processes: what they print, and how they end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from file_trees import tree

PATIENCE = 240.0
Popen = subprocess.Popen[bytes]
SHOP = '''
from headwater import Pipeline, dedup, latest

shop = Pipeline("shop", log="file:./data")
shop.source("orders", "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP", event_time="at", key="who")


@shop.stream(key="who")
def unique(orders):
    """Each order once."""
    return orders.transform(dedup(on="id", within="1 hour"))


@shop.view(key="who")
def newest(unique):
    """The last order of each."""
    return unique.transform(latest(by="who"))
'''
BAD = """
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from headwater import Pipeline

bad = Pipeline("bad", log="file:./data")
bad.source("orders", "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP", event_time="at", key="who")


@F.udf(DoubleType())
def taxed(amount):
    raise ValueError(f"no tax on {amount}")  # here


@bad.view(key="id")
def with_tax(orders):
    return orders.withColumn("tax", taxed("amount"))
"""
ORDERS = """
{"id": 1, "who": "ada", "amount": 5, "at": "2026-01-01T12:00:00Z"}
{"id": 2, "who": "bob", "amount": 7, "at": "2026-01-01T12:00:10Z"}
{"id": 1, "who": "ada", "amount": 5, "at": "2026-01-01T12:00:00Z"}
{"id": 3, "who": "ada", "amount": 9, "at": "2026-01-01T12:00:20Z"}
"""


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Popen]:
    """Start ``headwater`` where ``shop.py`` and ``bad.py`` are."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "bad.py").write_text(BAD)

    def started(*args: object) -> Popen:
        command = [sys.executable, "-c", "from headwater.cli import main; main()", *map(str, args)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("HEADWATER_", "SPARK_"))}
        environment["SPARK_MASTER"] = "local[2]"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        # A shell lets jobs in its background ignore Ctrl-C, and children inherit that.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return subprocess.Popen(command, env=environment, cwd=tmp_path, **pipes)  # type: ignore[call-overload,no-any-return]
        finally:
            signal.signal(signal.SIGINT, before)

    return started


Start = Callable[..., Popen]


def ended(process: Popen, input: str = "") -> tuple[int, str, str]:
    """Return how a process ended: its code, what it printed, what it complained of."""
    try:
        out, errors = process.communicate(input.encode(), timeout=PATIENCE)
    finally:
        process.kill()
    return process.returncode, out.decode(), errors.decode()


def lines(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def produce(start: Start) -> None:
    schema = "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP"
    declared = ("--schema", schema, "--key", "who", "--event-time", "at")
    assert ended(start("topic", "create", "orders", *declared))[0] == 0
    assert ended(start("produce", "orders"), ORDERS)[0] == 0


def test_a_pipeline_is_run_looked_at_and_proved(start: Start, tmp_path: Path) -> None:
    produce(start)
    code, out, errors = ended(start("run", "shop.py", "--until-caught-up"))
    assert code == 0, errors
    assert errors.startswith("opening the log …\n") or errors.startswith("starting Spark …\n")
    unique, newest, end = out.splitlines()
    assert re.fullmatch(r'stream "unique": 4 rows in, 3 out, in \d+ batch(es)?, 1 duplicate', unique)
    assert newest.startswith('view "newest": 3 rows in,')
    assert end.startswith('pipeline "shop" has caught up, in ')

    before = tree(tmp_path)
    code, out, _ = ended(start("view", "scan", "newest", "--format", "ndjson"))
    assert [(row["who"], row["id"]) for row in lines(out)] == [("ada", 3), ("bob", 2)]
    code, out, _ = ended(start("view", "get", "newest", "ada", "--wait-for", "shop.unique:0=3"))
    assert (code, out.splitlines()[1].split()[:2]) == (0, ["3", "ada"])

    code, out, _ = ended(start("status", "shop.py", "--format", "ndjson"))
    assert [(told["node"], told["lag"], told["rows"]) for told in lines(out)] == [
        ("unique", 0, None),
        ("newest", 0, 2),
    ]

    code, out, errors = ended(start("verify", "shop.py", "--format", "ndjson"))
    assert code == 0, errors
    assert [(told["node"], told["equal"], told["ok"]) for told in lines(out)] == [
        ("unique", 3, True),
        ("newest", 2, True),
    ]
    for command in ("view list", "view changes newest", "graph shop.py", "dead list shop.py", "topic list"):
        assert ended(start(*command.split()))[0] == 0, command
    assert tree(tmp_path) == before


def test_what_only_looks_at_a_pipeline_that_has_never_run_says_so_and_makes_nothing(
    start: Start, tmp_path: Path
) -> None:
    produce(start)
    before = tree(tmp_path)
    for command in ("verify shop.py", "status shop.py", "view list", "view get newest ada"):
        code, out, errors = ended(start(*command.split()))
        assert (code, out) == (1, ""), command
        assert "has not run yet" in errors or "no views beside the log" in errors
    assert ended(start("view", "list", "--pipeline", "shop.py"))[0] == 2
    assert tree(tmp_path) == before


def test_code_that_fails_is_told_by_node_line_and_error(start: Start, tmp_path: Path) -> None:
    produce(start)
    code, _, errors = ended(start("run", "bad.py", "--until-caught-up"))
    line = BAD.splitlines().index('    raise ValueError(f"no tax on {amount}")  # here') + 1
    assert code == 1
    told = [each for each in errors.splitlines() if not each.endswith("…")]
    assert [each.split(": ")[0] for each in told] == ["error", "detail", "hint"]
    assert told[0] == 'error: view "with_tax" failed on 4 records'
    assert 'topic "orders", partition 0, offset 0' in told[1]
    assert told[1].endswith(f"ValueError: bad.py:{line}: no tax on 5.0")
    assert "Traceback" in (tmp_path / "data" / "pipelines" / "bad" / "spark.log").read_text()


def test_ctrl_c_ends_a_live_run_quietly(start: Start, tmp_path: Path) -> None:
    produce(start)
    process = start("run", "shop.py", "--metrics-port", 0)
    assert process.stdout is not None
    try:
        deadline = time.monotonic() + PATIENCE
        while json.loads(process.stdout.readline())["state"] != "running":
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
    finally:
        code, out, errors = ended(process)
    assert code == 130
    assert all(told["error"] is None for told in lines(out))
    first, *rest = errors.splitlines()
    assert first.startswith("metrics at http://127.0.0.1:")
    assert all(each.endswith("…") for each in rest), errors


def test_the_columns_of_a_pipeline_are_checked(start: Start, tmp_path: Path) -> None:
    before = tree(tmp_path)
    code, out, errors = ended(start("check", "shop.py"))
    assert (code, errors) == (0, "")
    assert out.splitlines()[2].split()[:5] == ["unique", "stream", "who", "id", "BIGINT,"]
    assert tree(tmp_path) == before
