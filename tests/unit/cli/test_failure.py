from __future__ import annotations

import importlib

import click
import pytest
from tests.unit.cli.conftest import Run

from headwater.cli import main
from headwater.errors import HeadwaterError

topic_command = importlib.import_module(
    "headwater.cli.commands.topics.topic"
)  # the package has the command by this name


def test_an_error_is_printed_as_lines_without_a_traceback(run: Run, orders: object) -> None:
    result = run("consume", "ordes")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == 'error: no topic "ordes"\nhint: did you mean "orders"?\n'


def test_verbose_adds_the_traceback(run: Run, orders: object) -> None:
    result = run("--verbose", "consume", "ordes")
    assert "Traceback" in result.stderr
    assert result.stderr.count('no topic "ordes"') == 1
    assert run("consume", "ordes", "--verbose").stderr == result.stderr


def test_an_unexpected_error_is_one_line_and_tells_of_verbose(
    run: Run, orders: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(topic_command, "print_table", fail)
    result = run("topic", "list")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0] == "error: ZeroDivisionError: division"
    assert "--verbose" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_wrong_command_line_exits_with_2_and_points_to_the_help(run: Run) -> None:
    result = run("topic", "delete")
    assert result.exit_code == 2
    assert result.stderr == 'error: missing argument "NAME"\nhint: see `headwater topic delete --help`\n'


def test_an_argument_that_cannot_be_meant_exits_with_2(run: Run, orders: object) -> None:
    assert run("consume", "orders", "--from", "yesterday").exit_code == 2
    assert run("consume", "ordes").exit_code == 1


def test_what_the_operating_system_refuses_is_told_with_a_hint(
    run: Run, orders: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/srv/data")

    monkeypatch.setattr(topic_command, "print_table", fail)
    result = run("topic", "list")
    assert result.exit_code == 1
    assert result.stderr.startswith('error: cannot use "/srv/data"\ndetail: permission denied\nhint: ')
    assert "not expected" not in result.stderr


def test_each_line_of_a_hint_is_a_hint(run: Run, orders: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise HeadwaterError("it broke", hint="glue it\nor buy a new one")

    monkeypatch.setattr(topic_command, "print_table", fail)
    assert run("topic", "list").stderr == "error: it broke\nhint: glue it\nhint: or buy a new one\n"


def test_an_interrupt_exits_with_130_quietly(
    run: Run, orders: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(topic_command, "print_table", interrupt)
    result = run("topic", "list")
    assert (result.exit_code, result.output) == (130, "")


def test_reading_does_not_make_a_log_that_is_not_there(run: Run, tmp_path: object) -> None:
    result = run("topic", "list")
    assert result.exit_code == 1
    assert "error: no log at" in result.stderr
    assert not (tmp_path / "data").exists()  # type: ignore[operator]


def test_detail_and_hint_have_their_own_lines(
    run: Run, orders: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise HeadwaterError("it broke", detail="in the middle", hint="glue it")

    monkeypatch.setattr(topic_command, "print_table", fail)
    assert run("topic", "list").stderr == "error: it broke\ndetail: in the middle\nhint: glue it\n"


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version").stdout.startswith("headwater ")


def leaves(command: click.Command) -> list[list[str]]:
    """Return the names that lead to each command."""
    if not isinstance(command, click.Group):
        return [[]]
    return [[name, *rest] for name, inner in command.commands.items() for rest in leaves(inner)]


@pytest.mark.parametrize("command", [" ".join(path) for path in leaves(main)])
def test_every_help_has_an_example(run: Run, command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"headwater {command}" in result.stdout.split("Example", 1)[1]


def test_a_topic_that_a_pipeline_makes_itself_is_not_to_be_created(run: Run) -> None:
    run("topic", "create", "shop.by_hour", "--schema", "id BIGINT")
    told = run("consume", "shop.by_hour.late").stderr
    assert (
        told == 'error: no topic "shop.by_hour.late"\nhint: it is made with the first row that goes there\n'
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("delete", "payments"),
            'error: no topic "payments"\ndetail: there are: orders\n'
            'hint: make it with `headwater topic create payments --schema "…"`\n',
        ),
        (
            ("create", "orders", "--schema", "id INT", "--partitions", "2"),
            'error: topic "orders" exists already\n'
            "detail: schema: it has id BIGINT NOT NULL, item STRING, at TIMESTAMP, asked for id INT; "
            "key: it has id, asked for none; event_time: it has at, asked for none; "
            "partitions: it has 1, asked for 2\n"
            "hint: use `headwater topic alter` to change it, or choose another name\n",
        ),
        (
            ("create", "t", "--schema", "id INT", "--key", "who"),
            'error: topic "t" has no column "who"\nhint: its columns: id\n',
        ),
        (
            ("create", "t", "--schema", "id INT", "--event-time", "id"),
            'error: event-time column "id" is not a TIMESTAMP\ndetail: it is INT\n'
            "hint: declare it as TIMESTAMP, or name another column; a source computes one: "
            '"timestamp_millis(id)", or "timestamp_seconds(id)"\n',
        ),
    ],
)
def test_a_topic_that_cannot_be_meant_is_told_with_what_there_is(
    run: Run, orders: object, words: tuple[str, ...], said: str
) -> None:
    assert run("topic", *words).stderr == said
