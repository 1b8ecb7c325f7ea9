"""Rows in memory stand in for DataFrames: the same operators, the same refusals, no Spark."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from headwater import agg, dedup, joins, latest, windows
from headwater.errors import UsageError
from headwater.transforms.sample import sample

CLICKS = sample("url STRING, at TIMESTAMP", ("/a", "12:00:10"), ("/a", "2026-01-02T00:00"), event_time="at")


def test_what_comes_out_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    CLICKS.transform(windows.tumbling("1 day", by="url", n=agg.count())).show("window_start", "n", "complete")
    assert capsys.readouterr().out.splitlines() == [
        "window_start         n  complete",
        "00:00:00             1  True",
        "2026-01-02 00:00:00  1  True",
    ]


def test_operators_follow_each_other_and_time_goes_along() -> None:
    daily = CLICKS.transform(windows.tumbling("1 day", by="url", n=agg.count()))
    assert daily.event_time == "window_start"
    assert daily.transform(latest(by="url")).rows.num_rows == 1


def test_a_table_has_deletions() -> None:
    on_call = sample(
        "team STRING, who STRING, _deleted BOOLEAN", ("db", "ada", False), ("db", None, True), key="team"
    )
    alerts = sample("id BIGINT, team STRING", (1, "db"))
    assert alerts.transform(joins.lookup(on_call, on="team")).rows["who"].to_pylist() == [None]


def test_rows_without_an_event_time_are_refused_as_in_a_pipeline() -> None:
    with pytest.raises(UsageError, match="dedup needs to know when events happened"):
        sample("id BIGINT", (1,)).transform(dedup(on="id", within="1 hour"))


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match='no column "user"'):
        CLICKS.transform(latest(by="user"))


def test_the_example_of_the_docs_runs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "testing.md").read_text()
    (example,) = (
        block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "sample(" in block
    )
    exec(example, {})


def test_no_spark_is_needed() -> None:
    code = (
        "import sys; from headwater import latest; from headwater.transforms.sample import sample;"
        'sample("id BIGINT, at TIMESTAMP", (1, "12:00"), event_time="at").transform(latest(by="id"));'
        'assert "pyspark" not in sys.modules'
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
