"""Views and sinks of what has one row per key: a table, or the results of an operator that keeps the newest.

What comes in for a key replaces what came before; so where user code drops a row, nothing of the
key is left. Invariant: a view over a table has what its function makes of the table's rows as they
are now, however the changes were split into micro-batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.engine.plan.phases import Stage
from headwater.errors import PipelineError
from headwater.pipeline.declaration import Declaration, Table
from headwater.pipeline.node import Node
from headwater.record import DELETED
from headwater.values.keyed import last_of_each_key


def shown_table(node: Node, upstreams: Mapping[str, Declaration], stage: Stage | None) -> str | None:
    """Return the name of the table that a node shows, row by row; refuse a view of it with another key."""
    (first, *others) = upstreams.values()
    if not node.replacement_key or others or stage is not None or not isinstance(first, Table):
        return None
    if set(node.replacement_key) != set(first.key):
        if node.may_rekey_tables:  # it has all changes, as the user's code makes them
            return None
        raise PipelineError(
            f"{node.title} has another key than {first.title}, whose rows it shows",
            detail=f"{', '.join(node.key)} is not {', '.join(first.key)}: a row that changes would be left "
            "under its old key",
            hint=f"give it the key {', '.join(first.key)}, under that name",
            location=node.location,
        )
    return first.name


def has_operator_key(node: Node, stage: Stage) -> bool:
    """Tell whether a node has the key by which results of its operator replace each other."""
    return bool(node.replacement_key) and set(stage.operator.identity) == set(node.replacement_key)


def check_deletions(node: Node, stage: Stage | None, schema: pa.Schema) -> None:
    """Refuse what would keep results that are gone: code that drops their mark, a view with another key."""
    if stage is None or DELETED not in stage.output.names or has_operator_key(node, stage):
        return
    identity, key = set(stage.operator.identity), set(node.replacement_key)
    listed = ", ".join(stage.operator.identity)
    if key and (key < identity or key > identity):
        raise PipelineError(
            f"{node.title} has another key than the results of its {stage.name}",
            detail=f"{', '.join(node.replacement_key)} is not {listed}: a result that is gone would stay, or "
            "take another one's row with it",
            hint=f"give it the key {listed}",
            location=node.location,
        )
    if DELETED in schema.names:
        return
    raise PipelineError(
        f'{node.title} leaves out the column "{DELETED}" of the results of its {stage.name}',
        detail="a result that is gone would be a row of nulls",
        hint=f'keep "{DELETED}", or make it a view with the key {listed}',
        location=node.location,
    )


def last_per_key(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the last row of each key, deletions among them."""
    if not rows.num_rows:
        return rows
    (batch,) = rows.combine_chunks().to_batches()
    return pa.Table.from_batches([batch.take(last_of_each_key(batch, tuple(key)))])


def last_per_identity(rows: pa.Table, identity: Sequence[str]) -> pa.Table:
    """Return the last result of each identity; those that have a null in it are all there."""
    complete = np.ones(rows.num_rows, bool)
    for name in identity:
        complete &= rows[name].is_valid().to_numpy()
    return pa.concat_tables(
        [last_per_key(rows.filter(pa.array(complete)), identity), rows.filter(pa.array(~complete))]
    )


def without_deletions(rows: pa.Table) -> pa.Table:
    """Return the rows that are no deletions."""
    if DELETED not in rows.schema.names:
        return rows
    return rows.filter(pc.invert(pc.fill_null(rows[DELETED], False)))


def with_deletions(node: Node, results: pa.Table, changed: pa.Table) -> pa.Table:
    """Return results with a deletion for each key that has changed and has no result."""
    names = list(node.replacement_key)
    # A view has no null in its key, and may have it in a wider type.
    expected, present = changed.select(names).drop_null(), results.select(names).drop_null()
    expected = expected.cast(present.schema)
    _check_keys(node, present.join(expected, names, join_type="left anti"))
    gone = expected.join(present, names, join_type="left anti")
    if not gone.num_rows:
        return results
    marked = results if DELETED in results.schema.names else _marked(results, False)
    return pa.concat_tables([marked, _marked(gone, True)], promote_options="default")


def _check_keys(node: Node, foreign: pa.Table) -> None:
    """Refuse results under keys that nothing came in for: whatever is deleted, they would stay."""
    if not foreign.num_rows:
        return
    shown = ", ".join(f"{name}={value}" for name, value in foreign.slice(0, 1).to_pylist()[0].items())
    raise PipelineError(
        f"{node.title} has a row under another key than it came in with",
        detail=f"{shown}: it would stay when what it is made of is deleted",
        hint="keep the columns of the key as they are, and compute others beside them",
        location=node.location,
    )


def split_null_keys(rows: pa.Table, key: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Return the rows that can be kept by a key, and those that have a null in it."""
    without = np.zeros(rows.num_rows, bool)
    for name in key:
        without |= rows[name].is_null().to_numpy()
    return rows.filter(pa.array(~without)), rows.filter(pa.array(without))


def _marked(rows: pa.Table, deleted: bool) -> pa.Table:
    return rows.append_column(DELETED, pa.repeat(pa.scalar(deleted), rows.num_rows))
