"""Rows that are deleted by their keys."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from changes_kit import execute
from headwater.capture.sqlite.connection import SqliteConnection
from headwater.capture.sqlite.deleting import delete_rows


def test_rows_of_keys_of_several_columns_are_deleted(tmp_path: Path) -> None:
    file = tmp_path / "crm.db"
    execute(file, 'CREATE TABLE "a b" (shop TEXT, "n""o" INTEGER, raw BLOB, PRIMARY KEY (shop, "n""o"))')
    execute(file, *(("INSERT INTO \"a b\" VALUES ('x', ?, NULL)", (number,)) for number in range(4)))
    db = SqliteConnection(file, 1.0)
    with db.transaction():
        delete_rows(db, "a b", pa.record_batch({"shop": ["x", "x", "y"], 'n"o': [1, 2, 3]}))
    assert db.rows('SELECT "n""o" FROM "a b"') == [(0,), (3,)]
    db.close()


def test_keys_may_be_decimals(tmp_path: Path) -> None:
    file = tmp_path / "crm.db"
    execute(file, "CREATE TABLE t (id DECIMAL(10, 2) PRIMARY KEY)", "INSERT INTO t VALUES (1.5), (2), (0.1)")
    db = SqliteConnection(file, 1.0)
    with db.transaction():
        delete_rows(db, "t", pa.record_batch({"id": pa.array(["1.50", "2.00"]).cast(pa.decimal128(10, 2))}))
    assert db.rows("SELECT id FROM t") == [(0.1,)]
    db.close()
