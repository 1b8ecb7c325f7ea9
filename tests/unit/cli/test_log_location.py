"""Which log a command line names, and what may have been meant instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run

from headwater import Log


def test_the_log_may_be_named_before_the_command_and_after_it(
    run: Run, orders: Log, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_LOG", "file:./elsewhere")
    assert run("topic", "list").exit_code == 1
    assert "orders" in run("--log", url, "topic", "list").stdout
    assert "orders" in run("topic", "list", "--log", url).stdout
    assert "orders" in run("--log", "file:./elsewhere", "topic", "list", "--log", url).stdout


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("../w1/data", 'did you mean "file:../w1/data"?'),
        ("data", 'did you mean "file:data"?'),
        ("localhost:9092", 'did you mean "kafka://localhost:9092"?'),
        ("http://x", "use file:DIRECTORY or kafka://HOST:PORT"),
        ("memory:", "use file:DIRECTORY or kafka://HOST:PORT"),
    ],
)
def test_a_url_of_no_log_is_refused_with_what_may_be_meant(run: Run, url: str, hint: str) -> None:
    result = run("topic", "list", "--log", url)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[1] == f"hint: {hint}"


def test_the_directory_above_a_log_leads_to_it(run: Run, orders: Log, tmp_path: Path) -> None:
    result = run("topic", "list", "--log", f"file:{tmp_path}")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[1] == f'hint: did you mean "file:{tmp_path}/data"?'
