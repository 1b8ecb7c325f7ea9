"""``headwater events``: what has happened to an aggregate, and its state after each event."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import click

from headwater import Log
from headwater.cli import lazy_pandas
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, with_log
from headwater.errors import UsageError
from headwater.sourcing import RecordedEvent, history, load_decider


@click.command()
@click.argument("key")
@click.option(
    "--decider",
    "file",
    required=True,
    metavar="FILE[:NAME]",
    help="The file that declares the decider, and its name if there are several.",
)
@format_option("table", "ndjson", default="table")
@with_log()
def events(log: Log, key: str, file: str, form: str) -> None:
    """Show what has happened to the aggregate KEY, and its state after each event.

    \b
    Examples:
      headwater events ada --decider bank.py:account
      headwater events ada --decider bank.py:account --format ndjson | tail -1
    """
    decider = load_decider(file)
    if "pandas" in sys.modules:  # the file's code may hand its data frames to Arrow
        lazy_pandas.let_in()
    found = list(history(decider, log, key))
    if not found:
        raise UsageError(
            f'nothing has happened to "{key}" of decider "{decider.name}"', hint="check its spelling"
        )
    if form == "ndjson":
        print_ndjson(map(_facts, found))
    else:
        print_table((">version", "recorded", "event", "command", "state after"), map(_row, found))


def _row(recorded: RecordedEvent) -> tuple[object, ...]:
    at = recorded.recorded_at.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
    return recorded.version, at, repr(recorded.event), recorded.command or "", repr(recorded.state)


def _facts(recorded: RecordedEvent) -> dict[str, Any]:
    return {
        "version": recorded.version,
        "recorded_at": recorded.recorded_at.isoformat(),
        "event": type(recorded.event).__name__,
        "fields": {each.name: _plain(getattr(recorded.event, each.name)) for each in _fields(recorded.event)},
        "command": recorded.command,
        "request_id": recorded.request_id,
        "state": repr(recorded.state),
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def _fields(event: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(event)
