"""What ``headwater run`` prints of its nodes, and what it finds before it starts Spark."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run
from tests.unit.cli.screens.test_run_screen import BROKEN, FINE

from headwater.cli.screens.run_output import conclude, display, facts, summary
from headwater.pipeline import loading

SHOP = """
from headwater import Pipeline

shop = Pipeline("shop", log="file:./data")
shop.source("orders", "id BIGINT")

@shop.view(key="id")
def seen(orders):
    return orders
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(loading, "_OURS", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "shop.py"
    path.write_text(SHOP)
    yield path
    sys.modules.pop("shop", None)


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


@pytest.mark.parametrize("command", ["run", "check", "verify", "status"])
def test_a_wrong_pipeline_is_told_before_spark_starts(run: Run, file: Path, command: str) -> None:
    file.write_text(SHOP.replace("seen(orders)", "seen(oders)"))
    result = run(command, "shop.py")
    assert result.exit_code == 1
    assert result.stderr == (
        'error: view "seen" has no upstream "oders"\ndetail: shop.py:7\nhint: did you mean "orders"?\n'
    )


def test_a_command_that_needs_no_spark_does_not_import_it() -> None:
    code = "import sys, headwater.cli; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_everything_that_is_wrong_is_told_at_once(run: Run, file: Path) -> None:
    more = "\n@shop.view(key='id')\ndef other(seen):\n    return seen\n"
    file.write_text(SHOP.replace("seen(orders)", "seen(oders)") + more)
    assert run("check", "shop.py").stderr.count("error: ") == 2


def test_a_port_in_use_is_told_before_spark_starts(run: Run, file: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("run", "shop.py", "--metrics-port", port)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: port {port} for metrics is in use\n")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("command", ["verify", "status"])
def test_a_pipeline_that_has_not_run_has_nothing_to_look_at(
    run: Run, file: Path, tmp_path: Path, command: str
) -> None:
    result = run(command, "shop.py")
    assert result.exit_code == 1
    assert result.stderr == (
        'error: pipeline "shop" has not run yet\n'
        f'detail: it would have left something in "{tmp_path}/data/pipelines/shop"\n'
        "hint: run it with `headwater run shop.py`\n"
    )
    assert not (tmp_path / "data").exists()


def test_only_what_can_be_verified_is(run: Run, file: Path) -> None:
    result = run("verify", "shop.py", "orders")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        2,
        'error: source "orders" cannot be verified',
    )
    assert 'did you mean "seen"?' in run("verify", "shop.py", "sen").stderr


def test_a_setting_that_is_none_is_told(run: Run, file: Path) -> None:
    result = run("run", "shop.py", "--conf", "executor.memory=2g")
    assert result.exit_code == 2
    assert result.stderr == (
        'error: "executor.memory=2g" is no setting of Spark\nhint: write it as spark.executor.memory=2g\n'
    )


def test_a_pipeline_has_the_log_that_its_file_names(run: Run) -> None:
    done = run("--log", "file:./elsewhere", "run", "shop.py")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: `headwater run` takes no --log\nhint: a pipeline has the log")
    after = run("run", "shop.py", "--log", "file:./elsewhere")
    assert after.exit_code == 2
    assert after.stderr.startswith('error: no option "--log"\nhint: a pipeline has the log')


def test_help_is_given_whatever_stands_before_the_command(run: Run) -> None:
    for asked in ("--help", "-h"):
        helped = run("--log", "file:./elsewhere", "run", asked)
        assert (helped.exit_code, helped.stderr) == (0, "")
        assert helped.stdout.startswith("Usage:") and "Run the pipeline" in helped.stdout
