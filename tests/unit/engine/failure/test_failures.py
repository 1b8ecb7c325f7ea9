"""What a failed query means to a user: whose code, which line, what it said, and no stack trace."""

from __future__ import annotations

import errno
from functools import partial

from headwater.engine.failure import failures
from headwater.errors import DiskFull
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
