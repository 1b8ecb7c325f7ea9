"""What the demo shows of its views: how many rows, and a few of them.

Invariant: nothing here waits; a view that is not there yet is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from headwater.cli.formats import cell_text, units
from headwater.pipeline.pipeline import Pipeline
from headwater.views import View, open_views

ROWS = 12
"""More than any window shows."""
ORDER = {
    "spending": "total", "deliveries": "at", "big_orders": "at", "price_list": "since", "invoices": "at",
    "click_through": "window_start", "visits": "window_start", "timelines": "at",
}  # fmt: skip
"""By which column each view is shown, from the greatest on; the others by their key."""


@dataclass(frozen=True)
class Shown:
    """A view at one moment: its size, and its first rows as text."""

    name: str
    description: str
    count: int
    schema: pa.Schema
    rows: tuple[tuple[str, ...], ...]


def shown(pipeline: Pipeline) -> list[Shown]:
    """Return the views that there are, in the order in which they are declared."""
    store = pipeline.home / "views.db"
    return list(_read(pipeline)) if store.exists() else []


def _read(pipeline: Pipeline) -> Iterator[Shown]:
    with open_views(pipeline.home / "views.db") as views:
        made = views.names()
        for node in pipeline.nodes:
            if node.name in made:
                view = views[node.name]
                yield Shown(node.name, node.description, view.count(), view.schema, _rows(view))


def _rows(view: View) -> tuple[tuple[str, ...], ...]:
    order = ORDER.get(view.name)
    table = view.scan(order=order, descending=order is not None, limit=ROWS).to_table()
    columns = [_cells(table[field.name].combine_chunks(), field) for field in view.schema]
    return tuple(zip(*columns, strict=True))


def _cells(column: pa.Array, field: pa.Field) -> list[str]:
    """Return the values of a column as text, times as short as they can be told."""
    if pa.types.is_timestamp(field.type):
        return [units.short_moment(at) for at in column.to_pylist()]
    return cell_text.cells(column, field)
