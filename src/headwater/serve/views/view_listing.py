"""Views as the API lists them, and the routes about them as it describes them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headwater.errors import UnknownView
from headwater.schema import type_name
from headwater.serve.http.route import ApiRoute, Handler, Parameter
from headwater.serve.http.row_counts import RowCounts
from headwater.serve.http.served import Served
from headwater.serve.views.requests import LIMIT, MOST
from headwater.serve.views.row_formats import ARROW, CSV, NDJSON
from headwater.values.json_ready import calendar_time, json_ready
from headwater.views import View

_t = pa.types


def views(served: Served) -> list[dict[str, Any]]:
    """Return what there is to know of all views that are published."""
    listed = []
    for pipeline, store in served.views.items():
        for name in store.names():
            try:
                listed.append(_facts(store[name], pipeline, served.row_counts))
            except UnknownView:  # it is not published yet, or has just gone
                continue
    return listed


def _facts(view: View, pipeline: str, counts: RowCounts) -> dict[str, Any]:
    keyed, batch, newest = view.keyed, view.batch(), view.sequence()
    counted = counts.count(pipeline, view, newest)
    return {
        "name": view.name,
        "pipeline": pipeline,
        "key": list(keyed.key),
        "columns": [
            {"name": field.name, "type": type_name(field), "numeric": _is_number(field.type)}
            for field in keyed.schema
        ],
        "rows": counted.rows,
        "counted": counted.sequence,
        "sequence": newest,
        "version": view.version,
        "batch": batch if batch >= 0 else None,
        "clock": json_ready(calendar_time(view.watermark())),
    }


def _is_number(kind: pa.DataType) -> bool:
    return bool(_t.is_integer(kind) or _t.is_floating(kind) or _t.is_decimal(kind))


_VIEW = {
    "type": "object",
    "required": [
        "name",
        "pipeline",
        "key",
        "columns",
        "rows",
        "counted",
        "sequence",
        "version",
        "batch",
        "clock",
    ],
    "properties": {
        "name": {"type": "string"},
        "pipeline": {"type": "string"},
        "key": {"type": "array", "items": {"type": "string"}},
        "columns": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "type", "numeric"],
                "properties": {
                    "name": {"type": "string"},
                    "type": {"type": "string"},
                    "numeric": {"type": "boolean"},
                },
            },
        },
        "rows": {"type": "integer", "description": "how many rows it had after the change `counted`"},
        "counted": {
            "type": "integer",
            "description": "the change after which rows were counted; they are of now where it is `sequence`",
        },
        "sequence": {"type": "integer", "description": "the newest change"},
        "version": {"type": "integer"},
        "batch": {"type": ["integer", "null"]},
        "clock": {"type": ["string", "null"]},
    },
}
_VIEWS = {
    "type": "object",
    "required": ["views"],
    "properties": {"views": {"type": "array", "items": _VIEW}},
}
_ROW = {"type": "object"}
_PAGE = {
    "anyOf": [
        {
            "type": "object",
            "required": ["rows", "next", "sequence", "version"],
            "properties": {
                "rows": {"type": "array", "items": _ROW},
                "next": {"type": ["string", "null"]},
                "sequence": {"type": "integer"},
                "version": {"type": "integer"},
            },
        },
        _ROW,
    ]
}
_NAME = Parameter("view", "the view's name", "path", {"type": "string", "minLength": 1})
_COMMON = (
    Parameter("pipeline", "the pipeline, where several have a view of that name"),
    Parameter("after", "a position, as sending returns it: wait until the view includes what is before it"),
    Parameter("timeout", "how many seconds to wait", schema={"type": "number", "minimum": 0, "maximum": 30}),
    Parameter("If-None-Match", "the ETag of rows that one has already", "header"),
)
_LIST = {"type": "array", "items": {"type": "string"}}
_SCAN = (
    Parameter("key", "the values of a whole key: the one row that has it", schema=_LIST),
    Parameter("prefix", "the values of the key's first columns", schema=_LIST),
    Parameter("start", "where the next column of the key begins"),
    Parameter("end", "where it ends; this value is left out"),
    Parameter("order", "the column to order by; the key if there is none"),
    Parameter("desc", "whether the order is descending", schema={"type": "boolean"}),
    Parameter(
        "limit", "rows in a page", schema={"type": "integer", "minimum": 1, "maximum": MOST, "default": LIMIT}
    ),
    Parameter("cursor", "what the page before had as next"),
)


def routes(list_views: Handler, get_rows: Handler, get_row: Handler) -> tuple[ApiRoute, ...]:
    """Return the routes about views; that of a key is the last, for a key may be any path."""
    return (
        ApiRoute(
            "GET",
            "/views",
            list_views,
            "read",
            "Which views there are",
            responses={"200": {"description": "views", "content": {"application/json": {"schema": _VIEWS}}}},
        ),
        ApiRoute(
            "GET",
            "/views/{view}",
            get_rows,
            "read",
            "Rows of a view in pages, by key or in the order of a column",
            (_NAME, *_SCAN, *_COMMON),
            responses=_rows(
                "a page of rows; in other forms than JSON, next is the header Headwater-Next", _PAGE
            ),
            subject="view",
        ),
        ApiRoute(
            "GET",
            "/views/{view}/{key:path}",
            get_row,
            "read",
            "The row of a key: a segment of the path for each of its columns",
            (_NAME, Parameter("key", "the key", "path", {"type": "string", "minLength": 1}), *_COMMON),
            responses=_rows("the row", _ROW),
            subject="view",
        ),
    )


def _rows(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    others: dict[str, Any] = {form: {"schema": {"type": "string"}} for form in (NDJSON, CSV, ARROW)}
    return {
        "200": {"description": description, "content": {"application/json": {"schema": schema}, **others}},
        "304": {"description": "the rows are as the ETag says"},
    }
