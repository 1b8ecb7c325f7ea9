"""What is written to PostgreSQL where captures are measured: rows of about 100 bytes, and their changes."""

from __future__ import annotations

import time

import psycopg
from psycopg.sql import SQL, Identifier

COLUMNS = "id BIGINT PRIMARY KEY, bid INT NOT NULL, balance INT NOT NULL, filler TEXT NOT NULL, at FLOAT8"
_FILL = """
INSERT INTO {} SELECT n, n %% 100, n %% 7, repeat(md5(n::text), 3), 0
FROM generate_series(0, %s::int8 - 1) AS n
"""
_CHANGES = """
CREATE PROCEDURE {procedure}(transactions INT, together INT) AS $$
DECLARE made INT := 0; gone INT := 0; step INT;
BEGIN
    FOR number IN 0 .. transactions - 1 LOOP
        step := number %% 10;
        IF step < 5 THEN
            INSERT INTO {table} SELECT n, n %% 100, number, repeat(md5(n::text), 3), 0
                FROM generate_series(made::int8 * together, (made + 1)::int8 * together - 1) AS n;
            made := made + 1;
        ELSIF step < 8 THEN
            UPDATE {table} SET balance = number
                WHERE id >= (made - step + 4)::int8 * together AND id < (made - step + 5)::int8 * together;
        ELSE
            DELETE FROM {table} WHERE id >= gone::int8 * together AND id < (gone + 1)::int8 * together;
            gone := gone + 1;
        END IF;
        COMMIT;
    END LOOP;
END $$ LANGUAGE plpgsql
"""
"""Of ten transactions five insert rows, three update the newest, and two delete the oldest."""


def create(db: psycopg.Connection, table: str, rows: int = 0) -> None:
    """Make a table that holds some rows."""
    db.execute(SQL(f"CREATE TABLE {{}} ({COLUMNS})").format(Identifier(table)))
    db.execute(SQL(_FILL).format(Identifier(table)), (rows,))
    db.execute(SQL("ANALYZE {}").format(Identifier(table)))


def change(db: psycopg.Connection, table: str, changes: int, together: int) -> int:
    """Write changes in transactions of so many rows; return how many they are."""
    names = {"procedure": Identifier(f"change_{table}"), "table": Identifier(table)}
    db.execute(SQL(_CHANGES.replace("%%", "%")).format(**names))
    transactions = changes // together
    db.execute("SET enable_seqscan = off")  # the table was empty when the statements were planned
    db.execute(SQL("CALL {}(%s, %s)").format(names["procedure"]), (transactions, together))
    return transactions * together


def pace(url: str, table: str, rate: int, seconds: float, warm: float) -> int:
    """Insert rows one by one at a rate, each with its time; ``bid`` tells those after the warm-up."""
    count, first = int(rate * (seconds + warm)), int(rate * warm)
    statement = SQL("INSERT INTO {} VALUES (%s, %s, 0, 'x', %s)").format(Identifier(table))
    with psycopg.connect(url, autocommit=True) as db:
        began = time.time()
        for number in range(count):
            wait = began + number / rate - time.time()
            if wait > 0:
                time.sleep(wait)
            db.execute(statement, (number, int(number >= first), time.time()))
    return count - first
