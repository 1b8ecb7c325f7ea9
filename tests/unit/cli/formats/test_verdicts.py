"""What a verification has found, as people read it."""

from __future__ import annotations

import click
import pytest

from headwater import Pipeline, Verdict
from headwater.cli.formats.verdicts import print_verdicts, tell_differences

RIGHT = Verdict("seen", equal=1200)
WRONG = Verdict("seen", equal=3, missing=({"id": 1},))


@pytest.fixture
def shop() -> Pipeline:
    shop = Pipeline("shop")
    shop.sql("seen", "SELECT * FROM orders", key="id")
    return shop


def test_counts_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_verdicts([RIGHT])
    assert [line.split() for line in capsys.readouterr().out.splitlines()[::2]] == [
        ["node", "equal", "missing", "extra", "different"],
        ["seen", "1,200", "0", "0", "0"],
    ]


def test_what_is_right_is_passed_over_in_silence(shop: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    tell_differences(shop, [RIGHT])
    assert capsys.readouterr() == ("", "")


def test_what_differs_is_told_with_examples_and_ends_the_command(
    shop: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(click.exceptions.Exit) as ended:
        tell_differences(shop, [WRONG], "plain Python makes of it")
    said = capsys.readouterr().err.splitlines()
    assert ended.value.exit_code == 1
    assert said[0] == 'error: view "seen" is not what plain Python makes of it'
    assert len(said) == 2 and said[1].startswith("detail: ")
