"""Which rows of a batch change anything, and the statement that makes the table of them.

Invariant: a row that is as it was makes no new version; of each key at most one version is current.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable

from headwater.sinks.key_text import key_texts
from headwater.sinks.warehouse.declaration import CURRENT, FROM, TO, WarehouseSchema
from headwater.values import jsonl
from headwater.values.fitting import Fitted

_AT, _CLOSES, _GONE = "at", "closes", "gone"


@dataclass(frozen=True)
class Changes:
    """The rows of a batch that change something, at a time in microseconds."""

    rows: Fitted
    at: int


def effective(table: DeltaTable, settled: Fitted, declared: WarehouseSchema) -> Fitted:
    """Return the rows that differ from what is there, and deletions of what is there."""
    if not len(settled):
        return settled
    there = _current(table, settled, declared)
    place = pc.index_in(_keys(settled.rows, declared), value_set=_keys(there, declared))
    known = place.is_valid().to_numpy(zero_copy_only=False)
    same = np.zeros(len(settled), bool)
    same[known] = _equal(settled.rows.filter(pa.array(known)), there.take(place.drop_null()))
    chosen = np.where(settled.deleted, known, ~same)
    return Fitted(settled.rows.filter(pa.array(chosen)), settled.deleted[chosen])


def difference(table: DeltaTable, rows: list[pa.RecordBatch], declared: WarehouseSchema) -> Fitted:
    """Return what makes the current rows of a table others: those that differ, and deletions of the rest."""
    plain = pa.schema([declared.stored.field(name) for name in declared.schema.names])
    wanted = pa.Table.from_batches(rows, schema=plain).combine_chunks()
    there = pa.Table.from_batches(list(current(table, declared)), schema=plain).combine_chunks()
    known = pc.is_in(_keys(there, declared), value_set=_keys(wanted, declared))
    gone = there.filter(pc.invert(known))
    batch = pa.concat_tables([wanted, gone]).combine_chunks()
    deleted = np.arange(batch.num_rows) >= wanted.num_rows
    whole = batch.to_batches()[0] if batch.num_rows else pa.RecordBatch.from_pylist([], schema=plain)
    return effective(table, Fitted(whole, deleted), declared)


def merge(table: DeltaTable, changes: Changes, declared: WarehouseSchema, commit: CommitProperties) -> None:
    """Make the table of the changes, in one commit."""
    key = " AND ".join(f"t.{_quoted(name)} = s.{_source(declared, name)}" for name in declared.key)
    if not declared.history:
        _replace(table, changes, declared, key, commit)
        return
    source = pa.concat_tables([_rows(changes, declared, closes=True), _rows(changes, declared, closes=False)])
    own = {FROM: f"s.{_AT}", TO: "NULL", CURRENT: "true"}
    (
        table.merge(
            source, f"t.{CURRENT} = true AND s.{_CLOSES} AND {key}", "s", "t", commit_properties=commit
        )
        .when_matched_update(updates={TO: f"s.{_AT}", CURRENT: "false"})
        .when_not_matched_insert(predicate=f"NOT s.{_CLOSES}", updates=_values(declared) | own)
        .execute()
    )


def _replace(
    table: DeltaTable, changes: Changes, declared: WarehouseSchema, key: str, commit: CommitProperties
) -> None:
    (
        table.merge(_rows(changes, declared, closes=True), key, "s", "t", commit_properties=commit)
        .when_matched_delete(predicate=f"s.{_GONE}")
        .when_matched_update(updates=_values(declared), predicate=f"NOT s.{_GONE}")
        .when_not_matched_insert(updates=_values(declared), predicate=f"NOT s.{_GONE}")
        .execute()
    )


def _rows(changes: Changes, declared: WarehouseSchema, closes: bool) -> pa.Table:
    """Return the rows as the statement takes them: those that end a version, or those that begin one."""
    rows, gone = changes.rows.rows, pa.array(changes.rows.deleted)
    names = [_source(declared, name) for name in declared.schema.names]
    table = pa.table([*rows.columns, gone], names=[*names, _GONE])
    table = table.append_column(_AT, pa.array(np.full(len(rows), changes.at), pa.timestamp("us", "UTC")))
    table = table.append_column(_CLOSES, pa.array(np.full(len(rows), closes)))
    return table if closes else table.filter(pc.invert(gone))


def current(table: DeltaTable, declared: WarehouseSchema) -> Iterator[pa.RecordBatch]:
    """Yield the current rows."""
    yield from _dataset(table, _paths(_current_files(table, declared)), declared).to_batches()


def _current(table: DeltaTable, settled: Fitted, declared: WarehouseSchema) -> pa.Table:
    """Return the current rows among which those of a batch's keys are."""
    # Without a filter: where all texts of a file are the same, Arrow compares types that it cannot.
    return _dataset(table, _files(table, settled, declared), declared).to_table()


def _dataset(table: DeltaTable, files: list[str], declared: WarehouseSchema) -> ds.Dataset:
    root = table.table_uri.removeprefix("file://").rstrip("/")
    plain = pa.schema([declared.stored.field(name) for name in declared.schema.names])
    return ds.dataset([f"{root}/{name}" for name in files], schema=plain, format="parquet")


def _current_files(table: DeltaTable, declared: WarehouseSchema) -> pa.Table:
    """Return the files of current rows, with Delta's figures of them."""
    files = pa.table(table.get_add_actions(flatten=True))
    return files.filter(files[f"partition.{CURRENT}"]) if declared.history else files


def _paths(files: pa.Table) -> list[str]:
    return [unquote(name) for name in files["path"].cast(pa.string()).to_pylist()]


def _files(table: DeltaTable, settled: Fitted, declared: WarehouseSchema) -> list[str]:
    """Return the files of current rows that may have a key of the batch, as far as Delta's figures tell."""
    files = _current_files(table, declared)
    first, names = declared.key[0], (f"min.{declared.key[0]}", f"max.{declared.key[0]}")
    kind = declared.schema.field(first).type
    # Figures of numbers are exact; those of texts and times are cut off.
    if pa.types.is_integer(kind) and set(names) <= set(files.column_names):
        span = pc.min_max(settled.rows.column(first))
        low, high = (files[name].cast(kind) for name in names)
        within = pc.and_(pc.less_equal(low, span["max"]), pc.greater_equal(high, span["min"]))
        files = files.filter(pc.fill_null(within, True))
    return _paths(files)


def _keys(rows: pa.RecordBatch | pa.Table, declared: WarehouseSchema) -> pa.Array:
    batch = rows if isinstance(rows, pa.RecordBatch) else _one_batch(rows, declared)
    return pa.array(key_texts(batch, declared) if len(batch) else [], pa.string())


def _one_batch(rows: pa.Table, declared: WarehouseSchema) -> pa.RecordBatch:
    combined = [pa.concat_arrays(rows[name].chunks) for name in declared.key if rows.num_rows]
    return pa.RecordBatch.from_arrays(combined, names=list(declared.key) if combined else [])


def _equal(ours: pa.RecordBatch, theirs: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell for each two rows whether they are the same; nulls are equal, and so are NaN."""
    same = np.ones(len(ours), bool)
    for name in ours.schema.names if len(ours) else ():
        one, other = ours.column(name), theirs[name].combine_chunks().cast(ours.schema.field(name).type)
        if pa.types.is_nested(one.type) or pa.types.is_floating(one.type):
            one, other = jsonl.text(one), jsonl.text(_array(other))
        both_null = pc.and_(pc.is_null(one), pc.is_null(other))
        same &= pc.or_(pc.fill_null(pc.equal(one, other), False), both_null).to_numpy(zero_copy_only=False)
    return same


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def _values(declared: WarehouseSchema) -> dict[str, str]:
    return {_quoted(name): f"s.{_source(declared, name)}" for name in declared.schema.names}


def _source(declared: WarehouseSchema, name: str) -> str:
    """Return the name of a column in a statement's source: one of our own, which needs no quotes."""
    return f"c{declared.schema.names.index(name)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
