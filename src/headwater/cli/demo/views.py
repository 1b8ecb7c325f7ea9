"""What the demo shows of its views: how many rows, and a few of them.

Invariant: nothing here waits; a view that is not there yet is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from headwater import Pipeline, View, open_views
from headwater.api.views import has_views
from headwater.cli.formats import cell_text, units

ROWS = 12
"""More than any window shows."""
ORDER = {
    "gold_customers": "since", "spending": "total", "deliveries": "at", "big_orders": "at",
    "price_list": "since", "invoices": "at", "click_through": "window_start",
    "visits": "window_start", "timelines": "at",
}  # fmt: skip
"""By which column each view is shown, from the greatest on; the others by their key."""


@dataclass(frozen=True)
class ViewSample:
    """A view at one moment: its size, and its first rows as text."""

    name: str
    description: str
    count: int
    schema: pa.Schema
    rows: tuple[tuple[str, ...], ...]


def view_samples(pipeline: Pipeline) -> list[ViewSample]:
    """Return the views that there are, in the order in which they are declared."""
    return list(_read(pipeline)) if has_views(pipeline.home) else []


def _read(pipeline: Pipeline) -> Iterator[ViewSample]:
    with open_views(pipeline) as views:
        existing = views.names()
        for node in pipeline.nodes:
            if node.name in existing:
                view = views[node.name]
                yield ViewSample(node.name, node.description, view.count(), view.schema, _rows(view))


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
