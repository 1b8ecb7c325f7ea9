"""What ``headwater demo`` refuses, and where it finds its files; no Spark."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run

import headwater
from headwater.errors import HeadwaterError

demo_command = importlib.import_module("headwater.cli.commands.demo")


def test_exit_without_events_is_refused(run: Run) -> None:
    told = run("demo", "--exit")
    assert told.exit_code == 2
    assert told.stderr.splitlines() == [
        "error: --exit needs --events",
        "hint: as in `headwater demo --events 20000 --exit`",
    ]


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_a_number_of_events_that_is_none_is_refused(run: Run, number: str) -> None:
    told = run("demo", f"--events={number}", "--exit")
    assert told.exit_code == 2
    assert told.stderr.startswith('error: invalid value for "--events"')


def test_a_directory_with_something_in_it_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("")
    (tmp_path / "file").write_text("")
    for name in ("mine", "file"):
        told = run("demo", "--dir", name)
        assert told.exit_code == 2
        assert told.stderr.startswith(f'error: "{name}" is not an empty directory')


def test_the_example_is_found_beside_the_sources_or_in_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert demo_command._example() == Path(__file__).parents[4] / "examples" / "shop"
    installed = tmp_path / "headwater" / "examples" / "shop"
    installed.mkdir(parents=True)
    monkeypatch.setattr(headwater, "__file__", str(tmp_path / "headwater" / "__init__.py"))
    with pytest.raises(HeadwaterError, match="files of the demo are missing"):
        demo_command._example()
    (installed / "shop.py").write_text("")
    assert demo_command._example() == installed


def test_the_command_that_is_named_works_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / ".venv" / "bin" / "headwater"
    script.parent.mkdir(parents=True)
    script.write_text("")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert demo_command._command() == ".venv/bin/headwater"
    assert demo_command._command(near=False) == str(script)
    monkeypatch.setenv("PATH", str(script.parent))
    assert demo_command._command() == "headwater"
