"""``headwater seek``: a group that goes on from another place."""

from __future__ import annotations

from tests.unit.cli.conftest import Run

from headwater import Log


def test_seek_moves_a_group_and_prints_where_it_is(run: Run, behind: Log) -> None:
    assert run("seek", "billing", "orders", "--to", "latest").stdout == "orders:0=10\n"
    assert run("seek", "billing", "orders", "--to", 3).stdout == "orders:0=3\n"
    assert run("seek", "billing", "orders", "--to", "1 hour ago").stdout == "orders:0=0\n"
    assert behind.lag("billing")[0].committed == 0


def test_seek_notes_a_group_that_is_new(run: Run, orders: Log) -> None:
    assert run("seek", "billing", "orders", "--to", "earliest").stderr == 'note: group "billing" is new\n'
    assert run("seek", "billing", "orders", "--to", "earliest").stderr == ""
    result = run("seek", "biling", "orders", "--to", "earliest")
    assert result.stderr == 'note: group "biling" is new; did you mean "billing"?\n'
    assert result.stdout == "orders:0=0\n"


def test_what_is_no_place_moves_nothing(run: Run, behind: Log) -> None:
    result = run("seek", "billing", "orders", "--to", "yesterday")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith('error: "yesterday" is not a position in a topic\n')
    assert behind.lag("billing")[0].committed == 4


def test_a_place_must_be_named(run: Run, behind: Log) -> None:
    assert run("seek", "billing", "orders").exit_code == 2
    assert behind.lag("billing")[0].committed == 4
