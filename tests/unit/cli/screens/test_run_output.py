"""What ``headwater run`` prints of its nodes, in each form."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.unit.cli.screens.test_run_screen import BROKEN, FINE

from headwater import CaptureStatus
from headwater.cli.screens.run_output import conclude, display, facts, summary


def test_a_node_is_summed_up_in_a_line() -> None:
    assert summary(FINE) == ('view "click_through": 1,234,567 rows in, 99 out, in 812 batches, 17 late')
    one = replace(FINE, rows=1, batches=1, late=0, duplicates=1, dead=2)
    assert (
        summary(one) == 'view "click_through": 1 row in, 99 out, in 1 batch, 1 duplicate, 2 set aside so far'
    )
    assert summary(replace(FINE, batches=0)) == 'view "click_through": nothing new'


def test_the_facts_of_a_node_are_for_scripts() -> None:
    told = json.loads(json.dumps(facts("shop", BROKEN)))
    assert told["error"] == 'view "totals" failed: ValueError: shop.py:12: no tax on 0.0'
    assert (told["node"], told["state"], told["lag"], told["batch_seconds"]) == (
        "totals",
        "broken",
        1200,
        None,
    )
    assert told["clock"].endswith("Z")
    assert facts("shop", replace(FINE, clock=1 << 62))["clock"] is None, "no calendar has this time"


def test_lines_of_json_come_once_for_each_reading(capsys: pytest.CaptureFixture[str]) -> None:
    with display("ndjson", "shop", ends=False) as show:
        show([], "starting Spark", True)
        show([], "starting Spark", False)
        show([FINE, BROKEN], None, True)
        show([FINE, BROKEN], None, False)
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["node"] for line in lines] == ["click_through", "totals"]


def test_a_screen_that_is_no_terminal_gets_the_last_picture_only(capsys: pytest.CaptureFixture[str]) -> None:
    with display("screen", "shop", ends=False) as show:
        show([], "starting Spark", True)
        show([FINE], None, True)
    out = capsys.readouterr().out
    assert out.count("click_through") == 1
    assert "starting Spark" not in out


def test_the_end_is_told_in_the_form_of_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    conclude("ndjson", "shop", [FINE], 12.3)
    assert json.loads(capsys.readouterr().out)["rows"] == FINE.rows
    conclude("screen", "shop", [FINE], 12.3)
    assert capsys.readouterr().out.splitlines()[-1] == 'pipeline "shop" has caught up, in 12.3 s'


def test_as_lines_of_json_stdout_has_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    alarmed = replace(FINE, alert="too many rows come late")
    with display("ndjson", "shop", ends=True) as show:
        show([], "starting Spark", True)
        show([alarmed, BROKEN], None, True)
    conclude("ndjson", "shop", [alarmed], 1.0)
    assert [json.loads(line)["pipeline"] for line in capsys.readouterr().out.splitlines()] == ["shop"] * 3


def test_what_goes_on_before_there_are_figures_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with display("none", "shop", ends=True) as show:
        for step in ("starting Spark", "starting Spark", "preparing the nodes"):
            show([], step, True)
        show([FINE], None, True)
    assert capsys.readouterr() == ("", "starting Spark …\npreparing the nodes …\n")


def test_an_alert_is_a_warning_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    conclude("screen", "shop", [replace(FINE, alert="too many rows come late")], 1.0)
    assert capsys.readouterr().err == "warning: too many rows come late\n"


def test_captures_have_lines_of_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    with display("ndjson", "shop", ends=False) as show:
        show([], "starting Spark", True, [CaptureStatus("crm", "snapshot")])
        show([FINE], None, True, [CaptureStatus("crm", "streaming", 3)])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each.get("node"), each.get("capture"), each["state"]) for each in told] == [
        (None, "crm", "snapshot"),
        ("click_through", None, "running"),
        (None, "crm", "streaming"),
    ]
