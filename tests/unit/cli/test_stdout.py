"""What a user's code prints, and what is a command's result."""

from __future__ import annotations

import threading

import click
import pytest

from headwater.cli.stdout import results_only


def test_what_other_threads_print_does_not_get_into_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    with results_only():
        thread = threading.Thread(target=lambda: print("from a node's function"))
        thread.start()
        thread.join()
        click.echo("a result")
    print("afterwards")
    assert capsys.readouterr() == ("a result\nafterwards\n", "from a node's function\n")
