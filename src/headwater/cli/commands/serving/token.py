"""``headwater token``: who may call a server, and for what."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import pyarrow as pa

from headwater import TokenStore
from headwater.cli import log_location
from headwater.cli.formats.writers import row_writer
from headwater.cli.options import format_option, log_option, log_url, verbose_option

F = TypeVar("F", bound=Callable[..., Any])
_LISTED = pa.schema([("token", pa.string()), ("scopes", pa.string()), ("created", pa.string())])


def _with_store(command: F) -> F:
    """Give a command ``--token-file`` and ``--log``, and the store of tokens as its first argument."""

    @functools.wraps(command)
    def opened(*args: Any, tokens: Path | None, url: str | None, **kwargs: Any) -> Any:
        if tokens is None:
            log_location.check(log_url(url), make=False)  # a file in a directory keeps it from becoming one
        store = TokenStore(tokens) if tokens is not None else TokenStore.beside(log_url(url))
        return command(store, *args, **kwargs)

    option = click.option(
        "--token-file",
        "tokens",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The file of the tokens.  [default: tokens.json, where servers of the log keep it]",
    )
    return option(log_option(verbose_option(opened)))  # type: ignore[return-value]


@click.group()
def token() -> None:
    """Make, list and revoke the tokens of a server."""


@token.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    metavar="SCOPE",
    help="What it allows: send:TOPIC, read:VIEW, send:*, read:*, operate; may be repeated.",
)
@_with_store
def create(store: TokenStore, name: str, scopes: tuple[str, ...]) -> None:
    """Make a token and print it, this once.

    Only a hash of it is kept, so it cannot be printed again. Servers know it at once.

    \b
    Examples:
      headwater token create shop --scope send:orders
      headwater token create dashboard --scope read:* --scope operate
    """
    click.echo(store.create(name, scopes))


@token.command("list")
@format_option("table", "ndjson", "csv", default="table")
@_with_store
def list_(store: TokenStore, form: str) -> None:
    """List the tokens, with what they allow.

    \b
    Examples:
      headwater token list
      headwater token list --format ndjson
    """
    rows = [
        {"token": each.name, "scopes": " ".join(each.scopes), "created": each.created}
        for each in store.tokens()
    ]
    row_writer(form, _LISTED)(pa.RecordBatch.from_pylist(rows, schema=_LISTED))
    if not rows and form == "table":
        click.echo("no tokens yet", err=True)


@token.command()
@click.argument("name")
@_with_store
def revoke(store: TokenStore, name: str) -> None:
    """Revoke the token NAME: servers refuse it from now on.

    \b
    Example:
      headwater token revoke shop
    """
    store.revoke(name)
