"""The root group: a command's module is imported when the command is called, and no other's.

Invariant: what ``--help`` says of a command is what the command says of itself (a test compares them).
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import click

from headwater.cli import lazy_pandas
from headwater.cli.failure import ReportingGroup


class LazyCommand(NamedTuple):
    """Where a command is, and what ``--help`` says of it."""

    module: str
    """Below ``headwater.cli.commands``; its variable has the command's name, or that and an underscore."""
    help: str
    needs_pandas: bool = True
    """Whether data frames may become Arrow's in it, by Spark or by code of a user's."""


class LazyGroup(ReportingGroup):
    """Commands that are imported when they are called."""

    def __init__(self, *args: Any, lazy: Mapping[str, LazyCommand], **settings: Any):
        super().__init__(*args, **settings)
        self.lazy = lazy

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run as a program."""
        lazy_pandas.keep_out()
        return super().main(*args, **settings)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(self.lazy)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command."""
        if name in self.lazy and name not in self.commands:
            where = self.lazy[name]
            if where.needs_pandas:
                lazy_pandas.let_in()
            module = import_module(f"headwater.cli.commands.{where.module}")
            found = getattr(module, name, None) or getattr(module, f"{name}_")
            self.add_command(found, name)
        return super().get_command(ctx, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called, or name those that are close, imported or not."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            name, close = error.command_name, get_close_matches(error.command_name, self.lazy)
            raise click.exceptions.NoSuchCommand(name, possibilities=close, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, and import none of them."""
        limit = formatter.width - 6 - max(map(len, self.lazy))
        rows = [
            (name, click.Command(name, help=self.lazy[name].help).get_short_help_str(limit))
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
