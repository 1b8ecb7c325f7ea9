"""Whether the demo's views are over HTTP what they are in their store, row by row."""

from __future__ import annotations

import urllib.request
from urllib.parse import quote

import click
import pyarrow as pa

import headwater
from headwater import Pipeline, ServeSettings
from headwater.errors import HeadwaterError

_ARROW = "application/vnd.apache.arrow.stream"
_NEXT = "headwater-next"
"""The header with the cursor of the next page."""


def ask_server(pipeline: Pipeline) -> None:
    """Start a server for a moment, and compare what it answers with the views themselves."""
    with (
        headwater.open_server(pipeline, settings=ServeSettings(port=0)) as server,
        headwater.open_views(pipeline) as views,
    ):
        for name in views.names():
            if not served_rows(server.url, name).equals(views[name].scan().to_table()):
                raise HeadwaterError(f'view "{name}" is not over HTTP what it is in its store')
    click.echo("all views are over HTTP what they are in their store")


def served_rows(url: str, view: str) -> pa.Table:
    """Return all rows of a view, page by page, as a server answers them."""
    pages, cursor = [], ""
    while True:
        where = f"{url}/v1/views/{quote(view)}" + (f"?cursor={quote(cursor)}" if cursor else "")
        request = urllib.request.Request(where, headers={"Accept": _ARROW})  # our own server
        with urllib.request.urlopen(request) as answer:
            pages.append(pa.ipc.open_stream(answer.read()).read_all())
            cursor = answer.headers.get(_NEXT, "")
        if not cursor:
            return pa.concat_tables(pages)
