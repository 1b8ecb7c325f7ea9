"""What ``headwater verify`` says of right and wrong nodes; the proof itself is tested with Spark."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from tests.unit.cli.commands.conftest import SHOP
from tests.unit.cli.conftest import Run

from headwater import Verdict
from headwater.pipeline import loading

RIGHT = Verdict("seen", equal=1200)
WRONG = Verdict(
    "seen",
    equal=3,
    missing=({"id": 1, "text": "two\nlines"},),
    different=(({"id": 2, "text": "a"}, {"id": 2, "text": "b"}),),
)


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Verdict]]:
    """What the recomputation finds of the pipeline in ``shop.py``."""
    monkeypatch.setattr(loading, "_OURS", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "shop.py").write_text(SHOP)
    verdicts: list[Verdict] = []
    api = import_module("headwater.api.verify")
    monkeypatch.setattr(api, "_begun", lambda pipeline: {each.name for each in pipeline.nodes})
    monkeypatch.setattr(api, "_verdicts", lambda *_: verdicts)
    yield verdicts
    sys.modules.pop("shop", None)


def test_a_node_that_is_right_is_told_with_its_rows(run: Run, found: list[Verdict]) -> None:
    found.append(RIGHT)
    result = run("verify", "shop.py")
    header, _, line, _, said = result.stdout.splitlines()
    assert (result.exit_code, result.stderr) == (0, "")
    assert header.split() == ["node", "equal", "missing", "extra", "different"]
    assert line.split() == ["seen", "1,200", "0", "0", "0"]
    assert said == "all rows are equal"


def test_where_no_row_was_compared_none_is_called_equal(run: Run, found: list[Verdict]) -> None:
    found.append(Verdict("seen"))
    result = run("verify", "shop.py")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "there are no rows to compare")


def test_a_node_that_is_wrong_is_told_with_examples_and_exits_with_1(run: Run, found: list[Verdict]) -> None:
    found.append(WRONG)
    result = run("verify", "shop.py")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].split() == ["seen", "3", "1", "0", "1"]
    assert result.stderr == (
        'error: view "seen" is not what a batch over the same input gives\n'
        "detail: missing (id=1, text=two lines)\n"
        "detail: should be (id=2, text=a), is (id=2, text=b)\n"
    )


def test_the_same_is_there_for_scripts(run: Run, found: list[Verdict]) -> None:
    found.append(WRONG)
    told = json.loads(run("verify", "shop.py", "--format", "ndjson").stdout)
    assert told.pop("examples")[0] == "missing (id=1, text=two lines)"
    assert told == {
        "node": "seen",
        "kind": "view",
        "ok": False,
        "equal": 3,
        "missing": 1,
        "extra": 0,
        "different": 1,
        "unproved": None,
        "aside": [],
        "expired": 0,
        "undecided": 0,
    }


def test_what_is_not_verified_is_told_and_never_called_equal(run: Run, found: list[Verdict]) -> None:
    found.append(Verdict("seen", unproved="its lookup goes by what had arrived"))
    result = run("verify", "shop.py")
    told = 'note: view "seen" is not verified: its lookup goes by what had arrived\n'
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", told)


def test_columns_that_are_not_compared_are_named(run: Run, found: list[Verdict]) -> None:
    found.append(Verdict("seen", equal=3, aside=("p99",)))
    result = run("verify", "shop.py")
    assert result.stdout.splitlines()[-1] == "all rows are equal, but for what is not verified"
    assert result.stderr == 'note: view "seen" is verified without its estimates: p99\n'


def test_keys_that_kept_changing_are_told(run: Run, found: list[Verdict]) -> None:
    found.append(Verdict("seen", equal=3, undecided=2))
    result = run("verify", "shop.py")
    assert result.stdout.splitlines()[-1] == "all rows are equal, but for what is not verified"
    assert result.stderr == 'note: view "seen" is not verified: 2 keys kept changing\n'


def test_a_view_is_verified_wherever_it_is_kept_and_a_sink_is_not(
    run: Run, found: list[Verdict], tmp_path: Path
) -> None:
    elsewhere = SHOP.replace('log="file:./data"', 'log="file:./data", views="postgresql://db/shop"')
    (tmp_path / "shop.py").write_text(
        elsewhere + '\n@shop.sink("anywhere")\ndef out(orders):\n    return orders\n'
    )
    found.append(RIGHT)
    assert run("verify", "shop.py", "seen").exit_code == 0
    assert 'note: sink "out" is not verified' in run("verify", "shop.py").stderr
    result = run("verify", "shop.py", "out")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (2, 'error: sink "out" cannot be verified')


def test_rows_that_have_expired_are_told_and_a_source_names_what_it_compares(
    run: Run, found: list[Verdict], tmp_path: Path
) -> None:
    sink = '\nfrom headwater import targets\n@shop.sink(targets.sqlite("./out.db", "t", "id"))\n'
    (tmp_path / "shop.py").write_text(SHOP + sink + "def out(orders):\n    return orders\n")
    found.append(Verdict("out", equal=2, extra=({"id": 9},), expired=1))
    result = run("verify", "shop.py", "--against", "source")
    assert result.exit_code == 1
    assert 'note: pipeline "shop" captures no database' in result.stderr
    assert 'note: sink "out" keeps rows for a time: 1 rows that go by themselves' in result.stderr
    assert 'error: sink "out" is not what a batch over the same input gives\ndetail: extra (id=9)' in (
        result.stderr
    )
    refused = run("verify", "shop.py", "seen", "--against", "source")
    assert refused.exit_code == 2
    assert 'view "seen" cannot be compared with its source' in refused.stderr
