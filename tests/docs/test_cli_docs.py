"""Every command and option of the command line is in ``docs/cli.md``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from headwater.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def commands(command: click.Command = main, path: str = "headwater") -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, f"{path} {name}")
    else:
        yield path, command


def section(path: str) -> str:
    """Return what the page says under the heading of a command."""
    found = re.search(rf"^### `{path}`\n(.*?)(?=^##|\Z)", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            yield from (name for name in parameter.opts if name.startswith("--"))


@pytest.mark.parametrize(("path", "command"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_every_command_is_documented_with_its_options(path: str, command: click.Command) -> None:
    text = section(path)
    assert text, f"docs/cli.md has no heading ### `{path}`"
    shared = {"--log", "--verbose"}  # described once, for all
    missing = [name for name in options(command) if name not in shared and f"`{name}" not in text]
    assert not missing, f"docs/cli.md, {path}: {', '.join(missing)} missing"
    assert f"{path} " in text.split("```", 1)[1], f"docs/cli.md, {path}: no example"


def test_the_options_of_all_commands_are_documented() -> None:
    text = PAGE.read_text()
    for name in ("--log", "--help", *options(main)):
        assert f"`{name}" in text


def test_no_section_is_left_of_a_command_that_is_gone() -> None:
    documented = re.findall(r"^### `(headwater [^`]+)`$", PAGE.read_text(), flags=re.MULTILINE)
    assert sorted(documented) == sorted(path for path, _ in commands())


def test_no_option_is_documented_that_a_command_lacks() -> None:
    for path, command in commands():
        known = {*options(command), "--log", "--help", "--verbose"}
        named = set(re.findall(r"^- `(--[a-z-]+)", section(path), flags=re.MULTILINE))
        assert named <= known, f"docs/cli.md, {path}: {named - known} unknown"
