"""Messages of one table become its changes, as one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_kit as kit
from headwater.capture.change import DELETE, INSERT, UPDATE, SourceColumn, SourceTable, TableChanges
from headwater.capture.postgres.binary_columns import dates, numbers, texts
from headwater.capture.postgres.columns import Decoder
from headwater.capture.postgres.pgoutput import Parser, RowMessages
from headwater.capture.postgres.row_changes import Layout, table_changes
from pgoutput_kit import UNCHANGED

COLUMNS = [("id", 25, True), ("name", 25, False), ("note", 25, False)]
TEXT = Decoder(pa.string(), texts, texts)
TABLE = SourceTable("t", tuple(SourceColumn(name, pa.string(), "text") for name, _, _ in COLUMNS), ("id",))
LAYOUT = Layout(TABLE, (TEXT, TEXT, TEXT))

KEY = st.sampled_from([b"1", b"2"])
CELL = st.none() | st.sampled_from([b"a", b"bb", "ä".encode()])
NEW = st.tuples(KEY, CELL, CELL | st.just(UNCHANGED))
CHANGE = st.one_of(
    st.builds(lambda new: kit.insert(7, [new[0], new[1], None]), NEW),
    st.builds(lambda new: kit.update(7, new), NEW),
    st.builds(lambda new, key: kit.update(7, new, [key, None, None], b"K"), NEW, KEY),
    st.builds(lambda new, old: kit.update(7, new, old, b"O"), NEW, st.tuples(KEY, CELL, CELL)),
    st.builds(lambda key: kit.delete(7, [key, None, None]), KEY),
    st.builds(lambda old: kit.delete(7, old, b"O"), st.tuples(KEY, CELL, CELL)),
)
Row = tuple[object, ...]


def changes_of(messages: list[bytes], layout: Layout = LAYOUT) -> TableChanges | None:
    stream = [kit.begin(5, 100), kit.relation(7, COLUMNS), *messages, kit.commit(100, 110)]
    parsed = Parser().parse(kit.fetched(stream))
    if not parsed.parts:
        return None
    (run,) = parsed.parts
    assert isinstance(run, RowMessages)
    return table_changes(run, layout, parsed.transactions)


def one_by_one(messages: list[bytes]) -> list[Row]:
    """Return operation, index, row, row before, and whether the note is unchanged, of each change."""
    found: list[Row] = []
    for each in kit.slowly(messages):
        old, new = _filled(each.old, None), _filled(each.new, each.old)
        missing = new is not None and new[2] is UNCHANGED
        after = tuple(None if cell is UNCHANGED else cell for cell in new) if new is not None else None
        if each.kind == "D":
            found.append((DELETE, each.index, old, old, False))
        elif each.kind == "U" and old is not None and new is not None and old[0] != new[0]:
            found.append((DELETE, each.index, old, old, False))
            found.append((INSERT, each.index, after, None, missing))
        else:
            found.append((INSERT if each.kind == "I" else UPDATE, each.index, after, old, missing))
    return found


def _filled(
    cells: tuple[kit.Cell, ...] | None, old: tuple[kit.Cell, ...] | None
) -> tuple[kit.Cell, ...] | None:
    if cells is None or old is None:
        return cells
    return tuple(b if a is UNCHANGED and b is not None else a for a, b in zip(cells, old, strict=True))


def told(changes: TableChanges) -> list[Row]:
    missing = changes.unchanged.get("note", np.zeros(len(changes), bool)).tolist()
    before = _rows(changes.before) if changes.before is not None else [(None,) * 3] * len(changes)
    known = [None if row == (None,) * 3 else row for row in before]
    columns = (changes.operation.tolist(), changes.index.tolist(), _rows(changes.rows), known, missing)
    return list(zip(*columns, strict=True))


def _rows(batch: pa.RecordBatch) -> list[Row]:
    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return [tuple(None if value is None else value.encode() for value in row) for row in rows]


@given(st.lists(CHANGE, min_size=1))
def test_all_changes_are_those_that_reading_one_by_one_finds(messages: list[bytes]) -> None:
    # Only an identity of whole rows fills what is unchanged: a key alone has null there, or is null itself.
    changes = changes_of(messages)
    assert changes is not None
    assert told(changes) == one_by_one(messages)
    assert changes.rows.schema == LAYOUT.schema
    assert changes.transaction.tolist() == [0] * len(changes)


def test_inserts_alone_have_no_rows_before() -> None:
    changes = changes_of([kit.insert(7, [b"1", b"a", None])])
    assert changes is not None
    assert changes.before is None
    assert (changes.unfit, changes.unchanged) == ({}, {})


def test_a_row_that_does_not_fit_is_told_with_its_column_and_value() -> None:
    columns = (
        SourceColumn("id", pa.int32(), "integer"),
        SourceColumn("day", pa.date32(), "date"),
        SourceColumn("note", pa.string(), "text"),
    )
    decoders = (
        Decoder(pa.int32(), texts, numbers("i4", pa.int32())), Decoder(pa.date32(), texts, dates), TEXT,
    )  # fmt: skip
    layout = Layout(SourceTable("t", columns, ("id",)), decoders)
    one, forever = b"\0\0\0\1", b"\x7f\xff\xff\xff"
    messages = [
        kit.insert(7, [one, b"\0\0\0\0", None]),
        kit.update(7, [one, forever, None]),
        kit.delete(7, [one, forever, None], b"O"),
    ]
    changes = changes_of(messages, layout)
    assert changes is not None
    reason = 'column "day" cannot hold infinity'
    assert changes.unfit == {1: reason, 2: reason}
    assert changes.rows.column("day").null_count == 2
