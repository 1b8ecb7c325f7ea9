"""``headwater serve``: a log, its views and pipelines over HTTP, until Ctrl-C."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import click

import headwater
from headwater import ServeSettings
from headwater.cli import log_location
from headwater.cli.options import log_option, log_url, verbose_option
from headwater.cli.wording import OWN_LOG
from headwater.errors import UsageError

_PATH = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--host", default=ServeSettings.host, show_default=True, help="The address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=ServeSettings.port,
    show_default=True,
    metavar="N",
    help="The port to listen at; 0 takes any that is free.",
)
@click.option(
    "--token-file", "tokens", type=_PATH, help="Ask for a token, and read the tokens from this file."
)
@click.option("--certificate", type=_PATH, help="Serve with TLS: the certificate, as a PEM file.")
@click.option("--key", type=_PATH, help="The key of the certificate, as a PEM file.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory of what it has to know after a restart.  [default: serve in the log's directory]",
)
@click.option("--cors", "origins", multiple=True, metavar="ORIGIN", help="An origin whose pages may call it.")
@log_option
@verbose_option
def serve(files: tuple[str, ...], url: str | None, **how: Any) -> None:
    """Serve topics and views over HTTP, until Ctrl-C.

    With FILE it serves the log and the views of the pipelines in it, otherwise the log and the views of
    all pipelines beside it. No pipeline is run. On another address than one of loopback every
    request needs a token, which `headwater token create` makes.

    \b
    Examples:
      headwater serve
      headwater serve shop.py --port 8000
      headwater serve --host 0.0.0.0 --certificate cert.pem --key key.pem
    """
    if files and url is not None:
        raise UsageError("`headwater serve FILE` takes no --log", hint=OWN_LOG)
    if not files:
        log_location.check(log_url(url), make=False)
    with headwater.open_server(
        *files, log=None if files else log_url(url), settings=ServeSettings(**how)
    ) as server:
        # What is there before the first request stays: to look for garbage among it, again and again while
        # requests come and go, would let all of them wait for tens of milliseconds. It is done here, for
        # the process is this command's own; a program that opens a server has its own objects.
        gc.freeze()
        click.echo(f"serving at {server.url}", err=True)
        server.wait()
