"""A wrong command line, in our words."""

from __future__ import annotations

import click
import pytest
from tests.unit.cli.conftest import Run

from headwater.cli.wording import usage_error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-V", 'error: no option "-V"\nhint: did you mean "--version"?\n'),
        ("--lgo x topic list", 'error: no option "--lgo"\nhint: did you mean "--log"?\n'),
        ("consme", 'error: no command "consme"\nhint: did you mean "consume"?\n'),
        ("consume orders --fllow", 'error: no option "--fllow"\nhint: did you mean "--follow"?\n'),
        (
            "--format ndjson consume orders",
            'error: no option "--format"\nhint: an option of a command follows the command, as in '
            "`headwater consume orders --format ndjson`\n",
        ),
        (
            "orders consume",
            'error: no command "orders"\nhint: the command comes first, as in `headwater consume orders`; '
            "`headwater --help` lists them\n",
        ),
        (
            "lag --alert-over x",
            'error: invalid value for "--alert-over": "x" is not a whole number\n'
            "hint: see `headwater lag --help`\n",
        ),
        ("lag orders", 'error: unexpected argument "orders"\nhint: see `headwater lag --help`\n'),
        (
            "produce orders none.csv",
            'error: invalid value for "FILE": file "none.csv" does not exist\n'
            "hint: see `headwater produce --help`\n",
        ),
    ],
)
def test_what_click_refuses_is_told_in_our_words(run: Run, words: str, said: str) -> None:
    result = run(*words.split())
    assert (result.exit_code, result.stderr) == (2, said)


def test_what_no_command_has_refused_points_to_the_help_of_all() -> None:
    assert usage_error(click.UsageError("Something is wrong.")) == (
        "something is wrong",
        "see `headwater --help`",
    )


@pytest.mark.parametrize(
    ("said", "ours"),
    [
        ("'x' is not a valid float.", '"x" is not a number'),
        ("'0' is not a valid integer range.", '"0" is not a whole number'),
        ("0 is not in the range x>=1.", "0 is less than 1"),
        ("Got unexpected extra arguments (a b)", 'unexpected argument "a b"'),
    ],
)
def test_what_click_says_becomes_one_lower_case_line(said: str, ours: str) -> None:
    assert usage_error(click.UsageError(said))[0] == ours
