"""``headwater view``: what the views of a pipeline hold, whether it runs or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
import pyarrow as pa

from headwater import Position, View, Views
from headwater.api import view_keys
from headwater.api.views import TIMEOUT
from headwater.cli.formats.view_changes import before_oldest, blocks, change_writer
from headwater.cli.formats.writers import row_writer
from headwater.cli.options import format_option
from headwater.cli.view_location import with_views
from headwater.errors import HeadwaterError, UsageError
from headwater.schema import TIMESTAMP
from headwater.values.json_ready import calendar_time

F = TypeVar("F", bound=Callable[..., Any])
_LISTED = pa.schema(
    [
        ("view", pa.string()),
        ("rows", pa.int64()),
        ("key", pa.string()),
        ("batch", pa.int64()),
        ("clock", TIMESTAMP),
        ("version", pa.int64()),
    ]
)


@click.group()
def view() -> None:
    """Read the views of a pipeline."""


def _wait_options(command: F) -> F:
    """Give a command ``--wait-for`` and ``--timeout``."""
    command = click.option(
        "--timeout",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        default=TIMEOUT,
        show_default=True,
        help="How long to wait.",
    )(command)
    return click.option(
        "--wait-for",
        type=_position,
        metavar="POSITION",
        help="Wait until the view includes all records before it.",
    )(command)


def _position(text: str) -> Position:
    return Position.parse(text)


def _since(text: str) -> int | str:
    if text != "latest" and not text.isdecimal():
        raise UsageError(f'"{text}" is not the number of a change', hint="name a number, or latest")
    return text if text == "latest" else int(text)


_format = format_option("table", "ndjson", "csv", default="table")


@view.command("list")
@_format
@with_views
def list_(views: Views, form: str) -> None:
    """List the views, with their keys and sizes.

    \b
    Example:
      headwater view list
    """
    rows = [_facts(views[name]) for name in views.names()]
    row_writer(form, _LISTED)(pa.RecordBatch.from_pylist(rows, schema=_LISTED))
    if not rows and form == "table":
        click.echo("no views yet; a pipeline creates them when it runs", err=True)


@view.command()
@click.argument("name", metavar="VIEW")
@click.argument("key", nargs=-1, required=True)
@_wait_options
@_format
@with_views
def get(views: Views, name: str, key: tuple[str, ...], form: str, **wait: Any) -> None:
    """Print the row of VIEW with KEY.

    KEY is one value for each column of the view's key. Write -- before a value that begins with a dash.
    Exits with 1 if there is no such row.

    \b
    Examples:
      headwater view get totals ada
      headwater view get totals ada --wait-for orders:0=12
    """
    view = views[name]
    row = view.get(view_keys.key(key, view.keyed), **wait)
    if row is None:
        raise HeadwaterError(f'view "{name}" has no row with the key ({", ".join(key)})')
    row_writer(form, view.schema)(pa.RecordBatch.from_pylist([row], schema=view.schema))


@view.command()
@click.argument("name", metavar="VIEW")
@click.option(
    "--prefix", multiple=True, metavar="V", help="The value of the first column of the key, then of the next."
)
@click.option("--from", "start", metavar="V", help="Where to start, in the key column after the prefix.")
@click.option("--to", "end", metavar="V", help="Where to end there; this value is not included.")
@click.option("--order", metavar="COL", help="The column to order by.  [default: the key]")
@click.option("--desc", "descending", is_flag=True, help="Sort in descending order.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Print at most N rows.")
@_wait_options
@_format
@with_views
def scan(
    views: Views,
    name: str,
    prefix: tuple[str, ...],
    start: str | None,
    end: str | None,
    form: str,
    **how: Any,
) -> None:
    """Print the rows of VIEW, or some of them.

    \b
    Examples:
      headwater view scan totals --order total --desc --limit 10
      headwater view scan clicks --prefix /home --from "10 minutes ago"
    """
    view = views[name]
    leading = view_keys.prefix(prefix, view.keyed)
    first, last = (view_keys.bound(text, view.keyed, len(leading)) for text in (start, end))
    rows, write, none = view.scan(leading, first, last, **how), row_writer(form, view.schema), True
    for batch in rows:
        write(batch)
        none = False
    if none:
        _print_none(form, write, view)


@view.command()
@click.argument("name", metavar="VIEW")
@click.option(
    "--since",
    type=_since,
    metavar="N",
    help='Start after the change with this number, or at "latest".  [default: all that are retained]',
)
@click.option("--follow", is_flag=True, help="Keep printing changes as they come, until Ctrl-C.")
@_format
@with_views
def changes(views: Views, name: str, since: int | str | None, follow: bool, form: str) -> None:
    """Print the changes of VIEW.

    Of an insert or an update it prints the row after it, of a delete the row before it.

    \b
    Examples:
      headwater view changes totals --since latest --follow
      headwater view changes totals --since 1200 --format ndjson
    """
    view = views[name]
    if since is None:
        since = before_oldest(view)
    write = change_writer(form, view.schema)
    for block in blocks(view, view.sequence() if since == "latest" else int(since), follow):
        write(block)


def _print_none(form: str, write: Callable[[pa.RecordBatch], None], view: View) -> None:
    write(pa.RecordBatch.from_pylist([], schema=view.schema))  # CSV has a header all the same
    if form == "table":
        click.echo("no rows", err=True)


def _facts(view: View) -> dict[str, Any]:
    return {
        "view": view.name,
        "rows": view.count(),
        "key": ", ".join(view.key),
        "batch": view.batch() if view.batch() >= 0 else None,
        "clock": calendar_time(view.watermark()),
        "version": view.version,
    }
