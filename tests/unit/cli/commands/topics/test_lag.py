from __future__ import annotations

import json

from tests.unit.cli.conftest import Run

from file_trees import tree
from headwater import Log
from headwater.log.embedded import EmbeddedLog


def test_lag_is_shown_in_records_and_time(run: Run, behind: Log) -> None:
    header, _, line = run("lag").stdout.splitlines()
    assert header.split() == ["group", "topic", "partition", "committed", "end", "records", "behind"]
    assert line.split()[:6] == ["billing", "orders", "0", "4", "10", "6"]
    assert line.split()[-1] in ("s", "min")


def test_lag_as_ndjson_is_for_scripts(run: Run, behind: Log) -> None:
    lag = json.loads(run("lag", "--group", "billing", "--format", "ndjson").stdout)
    assert (lag["committed"], lag["end"], lag["records"]) == (4, 10, 6)
    assert lag["seconds"] > 0


def test_alert_over_exits_with_1_and_says_who_is_behind(run: Run, behind: Log) -> None:
    result = run("lag", "--alert-over", 5)
    assert result.exit_code == 1
    assert result.stderr == 'alert: group "billing" is 6 records behind in topic "orders", over 5\n'


def test_alert_over_is_silent_at_the_limit(run: Run, behind: Log) -> None:
    result = run("lag", "--alert-over", 6)
    assert (result.exit_code, result.stderr) == (0, "")


def test_an_unknown_group_is_an_error_not_a_lag_of_nothing(run: Run, behind: Log) -> None:
    result = run("lag", "--group", "biling", "--alert-over", 5)
    assert result.exit_code == 2
    assert result.stderr == 'error: no group "biling"\nhint: did you mean "billing"?\n'


def test_without_groups_there_is_nothing_to_show_and_nothing_is_made(run: Run, orders: EmbeddedLog) -> None:
    before = tree(orders.root)
    result = run("lag")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no group" in run("lag", "--group", "billing").stderr
    assert run("group", "list").exit_code == 0
    assert run("group", "delete", "billing").exit_code == 2
    assert tree(orders.root) == before
