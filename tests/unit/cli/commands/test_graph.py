"""``headwater graph``: what is drawn, where it goes, and how a wrong file is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from headwater.cli.commands.graph import graph
from headwater.cli.failure import ReportingGroup
from headwater.pipeline import loading

Draw = Callable[..., Result]
SHOP = """
from headwater import Pipeline

shop = Pipeline("shop", log="file:./nowhere")
shop.source("orders", "id BIGINT")

@shop.view(key="id")
def seen(orders):
    raise AssertionError("a drawing calls no function")
"""


@pytest.fixture
def draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Draw]:
    """Run the command where a file ``shop.py`` is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loading, "_OURS", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "shop.py").write_text(SHOP)
    root = ReportingGroup("headwater", commands=[graph])
    yield lambda *args: CliRunner().invoke(root, ["graph", *map(str, args)])
    sys.modules.pop("shop", None)


def test_text_goes_to_stdout_and_nothing_is_made(draw: Draw, tmp_path: Path) -> None:
    result = draw("shop.py")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "orders    source\n└▶ seen   view, key id\n"
    assert [each.name for each in tmp_path.iterdir()] == ["shop.py"]


def test_the_pipeline_may_be_named(draw: Draw) -> None:
    assert draw("shop.py:shop").exit_code == 0
    assert draw("shop.py:shpo").stderr.endswith('hint: did you mean "shop"?\n')


def test_a_form_can_be_asked_for(draw: Draw) -> None:
    assert draw("shop.py", "--format", "mermaid").stdout.startswith("flowchart LR\n")
    assert ElementTree.fromstring(draw("shop.py", "--format", "svg").stdout).tag.endswith("svg")


@pytest.mark.parametrize(
    ("name", "begin"),
    [("a.svg", "<svg"), ("a.mmd", "flowchart"), ("a.mermaid", "flowchart"), ("a.txt", "orders")],
)
def test_a_file_is_drawn_as_its_name_ends(draw: Draw, tmp_path: Path, name: str, begin: str) -> None:
    result = draw("shop.py", "--output", name)
    assert result.stdout == f'drew pipeline "shop" in {name}\n'
    assert (tmp_path / name).read_text().startswith(begin)
    assert (tmp_path / name).read_text().endswith("\n")


def test_a_form_that_is_asked_for_counts_more_than_the_name(draw: Draw, tmp_path: Path) -> None:
    draw("shop.py", "--output", "a.svg", "--format", "mermaid")
    assert (tmp_path / "a.svg").read_text().startswith("flowchart")


def test_a_place_that_cannot_be_written_is_told(draw: Draw) -> None:
    result = draw("shop.py", "--output", "nowhere/a.svg")
    assert result.exit_code == 1
    assert result.stderr.startswith('error: cannot use "nowhere/a.svg"\n')


def test_a_terminal_has_a_width(draw: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["headwater.cli.commands.graph"], "_in_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    assert draw("shop.py").stdout.splitlines() == [
        "orders",
        "  source",
        "seen",
        "  view, key id",
        "  ◀ orders",
    ]


def test_a_missing_file_is_a_wrong_command_line(draw: Draw) -> None:
    result = draw("shpo.py")
    assert (result.exit_code, result.stderr) == (
        2,
        'error: no file "shpo.py"\nhint: did you mean "shop.py"?\n',
    )


def test_a_misspelt_upstream_is_told_by_the_users_line(draw: Draw, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP.replace("seen(orders)", "seen(oders)"))
    result = draw("shop.py")
    assert result.exit_code == 1
    assert result.stderr == (
        'error: view "seen" has no upstream "oders"\ndetail: shop.py:7\nhint: did you mean "orders"?\n'
    )


def test_a_failing_file_shows_its_traceback_only_when_asked(draw: Draw, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("1 / 0\n")
    told = 'error: cannot load "shop.py"\ndetail: shop.py:1: ZeroDivisionError: division by zero\n'
    assert draw("shop.py").stderr == told
    verbose = draw("shop.py", "--verbose").stderr
    assert verbose.endswith(told)
    assert "Traceback" in verbose and "ZeroDivisionError" in verbose.removesuffix(told)
