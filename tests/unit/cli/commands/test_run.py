"""What ``headwater run`` and its kin find before they start Spark."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.commands.conftest import SHOP
from tests.unit.cli.conftest import Run


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
        'error: "executor.memory=2g" is not a Spark setting\nhint: write it as spark.executor.memory=2g\n'
    )


def test_a_pipeline_has_the_log_that_its_file_names(run: Run) -> None:
    done = run("--log", "file:./elsewhere", "run", "shop.py")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: `headwater run` takes no --log\nhint: a pipeline uses the log")
    after = run("run", "shop.py", "--log", "file:./elsewhere")
    assert after.exit_code == 2
    assert after.stderr.startswith('error: no option "--log"\nhint: a pipeline uses the log')


def test_help_is_given_whatever_stands_before_the_command(run: Run) -> None:
    for asked in ("--help", "-h"):
        helped = run("--log", "file:./elsewhere", "run", asked)
        assert (helped.exit_code, helped.stderr) == (0, "")
        assert helped.stdout.startswith("Usage:") and "Run the pipeline" in helped.stdout
