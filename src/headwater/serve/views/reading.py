"""``GET /v1/views``: which there are, their rows in pages, and one row by its key.

A read of a view in a file takes less than going to another thread would, so one row is read where the
request is; pages, waits and stores behind a network are read elsewhere. Invariant: an answer's ETag names a
change that its rows include, so that one who has it is never told that older rows are the newest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import orjson
import pyarrow as pa
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response

from headwater.errors import Behind
from headwater.log import Position
from headwater.serve.http.answer import JSON, json_response
from headwater.serve.http.problem import NoRow
from headwater.serve.http.served import served
from headwater.serve.views import cursor, requests, row_formats, view_listing
from headwater.serve.views.requests import PageRequest
from headwater.serve.views.view_lookup import locate
from headwater.serve.views.waiting import in_waiting_thread
from headwater.views import Reading, ViewQuery, Views, ViewVersion

T = TypeVar("T")
_SHORTEST, _LONGEST = 0.002, 0.02


@dataclass(frozen=True)
class RowsRead:
    """Rows of a view as they were after a batch, and the number of a change that they include."""

    version: ViewVersion
    sequence: int
    batches: list[pa.RecordBatch]
    next: str | None = None

    @property
    def schema(self) -> pa.Schema:
        """The view's columns."""
        return self.version.keyed.schema


async def list_views(request: Request) -> Response:
    """Tell which views there are."""
    return json_response({"views": await run_sync(view_listing.views, served(request))})


async def get_rows(request: Request) -> Response:
    """Return a page of rows, or one row by ``?key=``."""
    if texts := requests.keys(request):
        return await _one(request, texts)
    form = row_formats.accepted(request.headers.get("accept", ""))
    asked = requests.page(request)
    name, views = await locate(request)
    await _wait(request, name, views)
    read = await run_sync(partial(_read, views, name, partial(_page, asked), _known(request)))
    return _answer(read, form) if isinstance(read, RowsRead) else _not_modified(read)


async def get_row(request: Request) -> Response:
    """Return the row of a key that is in the path."""
    return await _one(request, requests.path_key(request.scope["raw_path"]))


async def _one(request: Request, texts: list[str]) -> Response:
    form = row_formats.accepted(request.headers.get("accept", ""))
    name, views = await locate(request)
    if request.scope["query_string"]:
        await _wait(request, name, views)
    if form == JSON and (quick := _quick_row(request, views, name, texts)) is not None:
        return quick
    read = await _quickly(partial(_read, views, name, partial(_row, texts), _known(request)), views, name)
    if not isinstance(read, RowsRead):
        return _not_modified(read)
    if not read.batches:
        raise NoRow(name)
    if form != JSON:
        return _answer(read, form)
    return Response(row_formats.lines(read.batches[0])[0], headers=_headers(read), media_type=JSON)


def _quick_row(request: Request, views: Views, name: str, texts: list[str]) -> Response | None:
    """Return the answer for one row of a file, without Arrow; None where that is not the way."""
    if _waits(views, name):
        return None
    with views.reading(name, None) as reading:
        row = reading.stored_row(partial(requests.key_of, texts))
    if row is None:
        return None
    read = RowsRead(row.version, row.sequence, [])
    if _tag(read) in _known(request):
        return _not_modified(_tag(read))
    if row.values is None:
        raise NoRow(name)
    text = row.json()
    return None if text is None else Response(text, headers=_headers(read), media_type=JSON)


def _read(
    views: Views, name: str, select: Callable[[Reading, RowsRead], RowsRead], known: frozenset[str]
) -> RowsRead | str:
    """Read rows, or return the tag of those that the client has; the change is looked up before the rows."""
    with views.reading(name, None) as reading:
        read = RowsRead(*reading.state(), [])
        return _tag(read) if _tag(read) in known else select(reading, read)


def _row(texts: list[str], reading: Reading, read: RowsRead) -> RowsRead:
    query = ViewQuery(requests.key_of(texts, read.version.keyed))
    query.check(read.version.keyed)
    return RowsRead(read.version, read.sequence, list(reading.batches(query)))


def _page(asked: PageRequest, reading: Reading, read: RowsRead) -> RowsRead:
    keyed = read.version.keyed
    query = asked.query(keyed)
    batches = list(reading.batches(query))
    if sum(map(len, batches)) <= asked.limit:
        return RowsRead(read.version, read.sequence, batches)
    whole = [*batches[:-1], batches[-1].slice(0, len(batches[-1]) - 1)]
    kept = [batch for batch in whole if len(batch)]
    return RowsRead(read.version, read.sequence, kept, cursor.after_last(kept[-1], query, keyed))


async def _quickly(read: Callable[[], T], views: Views, name: str) -> T:
    return await run_sync(read) if _waits(views, name) else read()


def _waits(views: Views, name: str) -> bool:
    of = getattr(views, "of", None)
    return bool((views if of is None else of(name)).remote)


async def _wait(request: Request, name: str, views: Views) -> None:
    """Wait until a view includes a position; while it waits for a file, no thread does."""
    position, timeout = requests.awaited(request)
    if position is None:
        return
    if _waits(views, name):
        await in_waiting_thread(partial(_await, views, name, position, timeout))
        return
    began, pause = time.monotonic(), _SHORTEST
    while True:
        waited = time.monotonic() - began
        try:
            _await(views, name, position, 0.0, timeout)
            return
        except Behind:
            if waited >= timeout:
                raise
        await asyncio.sleep(min(pause, timeout - waited))
        pause = min(pause * 2, _LONGEST)


def _await(views: Views, name: str, position: Position, timeout: float, waited: float = 0.0) -> None:
    views.view(name).wait(position, timeout, waited)


def _answer(read: RowsRead, form: str) -> Response:
    headers = _headers(read)
    if form != JSON:
        if read.next is not None:
            headers["headwater-next"] = read.next
        body = row_formats.encoded(read.batches, read.schema, form)
        return Response(body, headers=headers, media_type=form)
    rows = b",".join(b",".join(row_formats.lines(batch)) for batch in read.batches)
    rest = {"next": read.next, "sequence": read.sequence, "version": read.version.version}
    return Response(b'{"rows":[' + rows + b"]," + orjson.dumps(rest)[1:], headers=headers, media_type=JSON)


def _headers(read: RowsRead) -> dict[str, str]:
    return {"etag": _tag(read), "vary": "accept", "cache-control": "no-cache"}


def _tag(read: RowsRead) -> str:
    return f'W/"{read.version.id}-{read.sequence}"'


def _known(request: Request) -> frozenset[str]:
    tags = request.headers.get("if-none-match")
    return frozenset() if tags is None else frozenset(tag.strip() for tag in tags.split(","))


def _not_modified(tag: str) -> Response:
    return Response(status_code=304, headers={"etag": tag, "vary": "accept", "cache-control": "no-cache"})


ROUTES = view_listing.routes(list_views, get_rows, get_row)
