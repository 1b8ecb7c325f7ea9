"""``headwater rebuild`` and ``headwater reset``: what they refuse before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.commands.conftest import SHOP
from tests.unit.cli.conftest import Run


@pytest.mark.parametrize("command", [["rebuild"], ["reset", "--to", "latest"]])
def test_only_a_view_begins_anew(run: Run, file: Path, tmp_path: Path, command: list[str]) -> None:
    result = run(*command, "shop.py", "orders")
    assert result.exit_code == 2
    assert result.stderr.startswith('error: source "orders" cannot be built anew\n')
    assert 'did you mean "seen"?' in run(*command, "shop.py", "sen").stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("command", [["rebuild"], ["reset", "--to", "latest"]])
def test_a_wrong_pipeline_is_told_first(run: Run, file: Path, tmp_path: Path, command: list[str]) -> None:
    file.write_text(SHOP.replace("seen(orders)", "seen(oders)"))
    result = run(*command, "shop.py", "seen")
    assert result.exit_code == 1
    assert result.stderr.startswith('error: view "seen" has no upstream "oders"\n')
    assert not (tmp_path / "data").exists()


def test_a_reset_needs_a_place_that_is_one(run: Run, file: Path) -> None:
    assert 'missing option "--to"' in run("reset", "shop.py", "seen").stderr
    result = run("reset", "shop.py", "seen", "--to", "yesterday")
    assert result.exit_code == 2
    assert result.stderr.startswith('error: "yesterday" is not a position in a topic\n')
