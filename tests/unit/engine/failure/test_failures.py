"""What a failed query means to a user: whose code, which line, what it said, and no stack trace."""

from __future__ import annotations

import errno
import traceback
from functools import partial

from headwater.engine.failure import failures
from headwater.errors import DiskFull, LogRefused, LogUnavailable, PipelineError, UsageError, is_transient
from headwater.pipeline.node import ViewNode

NODE = ViewNode(name="totals", file="/app/shop.py", line=3, key=("id",))
SPARK = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/venv/pyspark/worker.py", line 900, in main
    process()
  File "/app/shop.py", line 17, in strict
    return int(text)
  File "/venv/other.py", line 5, in deeper
    raise ValueError
ValueError: invalid literal for int() with base 10: 'two'

\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1)
"""
error_from_text = partial(failures.error_from_text, NODE)


def test_the_end_of_the_traceback_is_told_with_the_last_line_of_the_users_own_file() -> None:
    error = error_from_text(SPARK)
    assert error.message == 'view "totals" failed: ValueError'
    assert error.detail == "/app/shop.py:17: invalid literal for int() with base 10: 'two'"
    assert "org.apache" not in str(error) and "Traceback" not in str(error)


def test_where_nothing_was_raised_in_python_the_first_line_is_told_cut_short() -> None:
    error = error_from_text("\n  Job aborted " + "x" * 1000 + "\n\tat org.apache.spark.Runner\n")
    assert error.message == 'view "totals" failed'
    place = "/app/shop.py:3: "
    assert (error.detail or "").startswith(f"{place}Job aborted xxx") and "org.apache" not in str(error)
    assert len(error.detail or "") == len(place) + 300
    assert error_from_text(" \n").detail == f"{place}Spark gave no reason"


def test_an_exception_of_the_driver_is_told_by_its_type_and_words() -> None:
    assert failures.one_line(NODE, KeyError("who")) == "KeyError: /app/shop.py:3: 'who'"


def test_a_full_disk_is_called_that_and_by_its_own_line() -> None:
    error = failures.error_from_exception(NODE, OSError(errno.ENOSPC, "No space left on device"))
    assert isinstance(error, DiskFull)
    assert 'the state of view "totals"' in error.message
    pages = RuntimeError(f"{SPARK}\nCaused by: java.io.IOException: No space left on device\n\tat x")
    assert (
        failures.error_from_exception(NODE, pages).detail
        == "Caused by: java.io.IOException: No space left on device"
    )


def raised(error: Exception) -> str:
    """Return Spark's message of a planner, or a worker, that has raised an error."""
    try:
        raise error
    except Exception as told:
        text = "".join(traceback.format_exception(told))
    return f"[STREAMING_PYTHON_RUNNER] failed when invoking latestOffset:\n{text}\n\tat org.apache.spark.X\n"


def test_a_log_that_is_away_while_a_batch_is_planned_is_no_fault_of_the_node() -> None:
    away = LogUnavailable("the broker is away", detail="db:9092: refused", hint="start it")
    error = error_from_text(raised(away))
    assert (type(error), error.message, error.detail, error.hint) == (
        *(LogUnavailable, "the broker is away", "db:9092: refused", "start it"),
    )
    assert is_transient(error)
    assert is_transient(failures.error_from_exception(NODE, RuntimeError(raised(LogUnavailable("away")))))


def test_a_log_that_refuses_is_not_waited_for() -> None:
    error = error_from_text(raised(LogRefused("wrong password")))
    assert (type(error), is_transient(error)) == (LogRefused, False)


def test_other_errors_of_ours_are_the_nodes() -> None:
    assert isinstance(error_from_text(raised(UsageError("no such column"))), PipelineError)
