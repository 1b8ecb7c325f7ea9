"""What a store cannot hold is told before anything is made."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import SchemaError, UsageError
from headwater.sinks import Batch
from headwater.stores import limits
from headwater.values.keyed import declare
from headwater.views import ViewStore
from headwater.views.postgres import PostgresSink

NOWHERE = "postgresql://shop@127.0.0.1:1/shop"


@pytest.mark.parametrize("name", ["ctid", "xmin", "tableoid"])
def test_a_column_that_every_table_has_is_refused(name: str) -> None:
    with pytest.raises(SchemaError, match=f'cannot have a column "{name}"'):
        PostgresSink(NOWHERE, "stock", f"item STRING, {name} BIGINT", "item")


def test_columns_that_the_server_would_make_one_are_refused() -> None:
    long = "c" * 63
    with pytest.raises(UsageError, match="too long for PostgreSQL"):
        PostgresSink(NOWHERE, "stock", f"item STRING, {long}1 BIGINT, {long}2 BIGINT", "item")
    PostgresSink(NOWHERE, "stock", f"item STRING, {long} BIGINT", "item")


def test_a_key_of_more_columns_than_an_index_has_is_refused() -> None:
    names = [f"c{n}" for n in range(33)]
    with pytest.raises(SchemaError, match="too many key columns"):
        PostgresSink(NOWHERE, "stock", ", ".join(f"{name} BIGINT" for name in names), tuple(names))


@pytest.mark.parametrize("keys", [1, 3])
def test_a_view_has_as_many_columns_as_sqlite_takes(tmp_path: Path, keys: int) -> None:
    most = (2000 - 3 + keys) // 2
    for count in (most, most + 1):
        names = [f"c{n}" for n in range(count)]
        schema = ", ".join(f"{name} BIGINT" for name in names)
        with ViewStore(tmp_path / f"{count}.db") as store:
            if count > most:
                with pytest.raises(SchemaError, match="too many columns"):
                    store.sink("wide", schema, tuple(names[:keys]))
                return
            sink = store.sink("wide", schema, tuple(names[:keys]))
            sink.begin()
            for batch in range(2):
                values = {name: [batch if n >= keys else 0] for n, name in enumerate(names)}
                assert sink.commit(Batch(batch, pa.table(values)))
            assert [change.kind for change in store["wide"].changes()] == ["insert", "update"]


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=80))
def test_a_name_passes_only_if_the_server_keeps_all_of_it(name: str) -> None:
    schema = pa.schema([("k", pa.int64()), (name, pa.int64())])
    try:
        keyed = declare("table", schema, "k")
    except (SchemaError, UsageError):  # it can be declared nowhere
        return
    fits = len(name.encode()) <= 63 and name not in ("ctid", "xmin", "xmax", "cmin", "cmax", "tableoid")
    try:
        limits.check_postgres(keyed, changes=False)
    except (SchemaError, UsageError):
        assert not fits
    else:
        assert fits


@pytest.mark.parametrize(
    ("table", "columns", "key"),
    [
        ("t" * 57, "id BIGINT", "id"),
        ("t ", "id BIGINT", "id"),
        ("t", "id BIGINT, `" + "c" * 65 + "` INT", "id"),
        ("t", "id BIGINT, n DECIMAL(38,31)", "id"),
        ("t", "a STRING, b STRING, c STRING, d BINARY", ("a", "b", "c", "d")),
    ],
)
def test_what_mysql_cannot_have_is_told_beforehand(
    table: str, columns: str, key: str | tuple[str, ...]
) -> None:
    with pytest.raises((SchemaError, UsageError)):
        limits.check_mysql(table, declare("table", columns, key))
    limits.check_mysql("t" * 56, declare("table", "id STRING, n DECIMAL(38,30)", "id"))
