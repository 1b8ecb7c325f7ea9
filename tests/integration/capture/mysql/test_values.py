"""Every type of MariaDB: the binlog and a snapshot tell the same, and what does not fit is told."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from source_kit import drain

TABLE = """CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, a TINYINT UNSIGNED, s SMALLINT,
 m MEDIUMINT UNSIGNED,
 d DECIMAL(30,10), w DECIMAL(50,2), f FLOAT, g DOUBLE, ch CHAR(5), v VARCHAR(300),
 l VARCHAR(9) CHARACTER SET latin1, tx TEXT, b BINARY(4), vb VARBINARY(4), bl BLOB, da DATE,
 dt DATETIME(3), ts TIMESTAMP(6) NULL, ti TIME, tf TIME(2), y YEAR,
 e ENUM('a','b'), st SET('z','y','x'), j JSON, bi BIT(10), b1 BIT(1), gv INT AS (a + 1) VIRTUAL,
 gs INT AS (a + 2) STORED, u UUID)"""
FULL = """INSERT INTO t
 (id, a, s, m, d, w, f, g, ch, v, l, tx, b, vb, bl, da, dt, ts, ti, tf, y, e, st, j, bi, b1, u)
 VALUES (18446744073709551615, 200, -5, 16777215, -12.345, 123456789012345678901234567890.25, 1.2345678,
 1e-300,
 'ab', 'é😀', 'é', 't', 'a', 'a', X'00FF', '2024-01-02', '2024-01-02 03:04:05.678',
 '2023-11-14 22:13:20.123456', '-838:59:59', '01:02:03.40', 2024, 'b', 'x,z', '{"a": 1}', b'1010101010',
 1, UUID())"""
EXPECTED = {
    "id": Decimal(18446744073709551615), "a": 200, "s": -5, "m": 16777215, "d": Decimal("-12.3450000000"),
    "w": "123456789012345678901234567890.25", "f": 1.2345677614212036, "g": 1e-300, "ch": "ab", "v": "é😀",
    "l": "é", "tx": "t", "b": b"a\0\0\0", "vb": b"a", "bl": b"\0\xff", "da": date(2024, 1, 2),
    "dt": datetime(2024, 1, 2, 3, 4, 5, 678000), "ts": datetime(2023, 11, 14, 22, 13, 20, 123456, UTC),
    "ti": "-838:59:59", "tf": "01:02:03.40", "y": 2024, "e": "b", "st": "z,x", "j": '{"a": 1}', "bi": 682,
    "b1": True, "gv": 201, "gs": 202,
}  # fmt: skip


def told(source: Any, position: str) -> list[Any]:
    found: list[Any] = []
    drain(source, lambda delivery: found.extend(delivery.changes), position)
    return found


def test_the_binlog_and_a_snapshot_tell_the_same(capture: Any, execute: Any) -> None:
    execute(TABLE, "SET time_zone = '+00:00'")
    source = capture()
    position = source.begin(["t"], None)
    execute("BEGIN", FULL, "INSERT INTO t (id) VALUES (1)", "COMMIT")  # which is delivered at once
    (changes,) = told(source, position)
    chunk = source.chunk("t", None, 10)
    assert not changes.unfit and not chunk.unfit
    assert changes.rows.to_pylist()[0] == EXPECTED
    assert chunk.rows.to_pylist()[1] == EXPECTED
    assert chunk.rows.to_pylist()[0] == changes.rows.to_pylist()[1] == dict.fromkeys(EXPECTED) | {"id": 1}
    assert chunk.rows.schema == changes.rows.schema
    assert [each.name for each in changes.table.columns] == list(EXPECTED)


def test_what_does_not_fit_is_told(capture: Any, execute: Any) -> None:
    execute(TABLE, "SET sql_mode = ''")
    source = capture()
    position = source.begin(["t"], None)
    execute(
        "BEGIN",
        "INSERT INTO t (id, da) VALUES (1, '0000-00-00')",
        "INSERT INTO t (id, dt) VALUES (2, '2024-00-01')",
        "INSERT INTO t (id, ts) VALUES (3, '0000-00-00')",
        "INSERT INTO t (id, e, st, y) VALUES (4, '', '', 0)",
        "COMMIT",
    )
    (changes,) = told(source, position)
    chunk = source.chunk("t", None, 10)
    assert list(changes.unfit) == list(chunk.unfit) == [0, 1, 2]
    assert 'column "da" cannot hold 0000-00-00' in changes.unfit[0]
    assert chunk.unfit[1] == 'column "dt" cannot hold 2024-00-01 00:00:00.000'
    for batch in (changes.rows, chunk.rows):
        row = batch.to_pylist()[3]
        assert (row["e"], row["st"], row["y"]) == ("", "", 0)
