"""A database that is never at rest: pgbench, random statements and random DDL.

Invariant: the columns that are declared to the capture stay, and take in nothing that they could not hold.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from postgres_server import find_binaries

ACCOUNTS, PEOPLE = 4_000, 1_500
TABLES = """
CREATE TABLE accounts (
    id INT PRIMARY KEY, balance INT NOT NULL DEFAULT 0, rate NUMERIC(6,2), note VARCHAR(40)
);
CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT, account INT, bio TEXT);
ALTER TABLE people ALTER COLUMN bio SET STORAGE EXTERNAL;
CREATE TABLE moves (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account INT, amount INT);
CREATE TABLE other (id INT PRIMARY KEY, text TEXT)
"""
SCRIPTS = {
    "move": """
\\set account random(1, 4000)
\\set amount random(-100, 100)
BEGIN;
UPDATE accounts SET balance = balance + :amount WHERE id = :account;
INSERT INTO moves (account, amount) VALUES (:account, :amount);
END;
""",
    "forget": """
DELETE FROM moves WHERE id IN (SELECT id FROM moves ORDER BY random() LIMIT 8 FOR UPDATE SKIP LOCKED);
""",
}
MOVES_A_SECOND = 150
NAMES = ("ada", "ben", "cleo", "dan", "eva", "finn", "gus", "hana")


class Load:
    """Applications that write to one database, and somebody who alters its tables."""

    def __init__(self, database: str, folder: Path, seed: int):
        self._database, self._folder = database, folder
        self._chance = random.Random(seed)
        self._extra: list[tuple[str, str]] = []
        self._digits, self._length, self._new = 6, 40, PEOPLE
        self._bench: subprocess.Popen[bytes] | None = None
        self.done: Counter[str] = Counter()
        """How often which kind of work was committed."""

    def fill(self) -> None:
        """Make the tables, with rows that are there before anything is captured."""
        with psycopg.connect(self._database) as db:
            for statement in TABLES.split(";"):
                db.execute(statement)
            self._refill_accounts(db)
            self._insert_people(db, range(PEOPLE))

    def start_bench(self) -> None:
        """Start pgbench, where the installation has it, if it does not run: it ends with its server."""
        program = find_binaries() / "pgbench"
        if not program.exists() or (self._bench is not None and self._bench.poll() is None):
            return
        command = [str(program), "-n", "-c", "2", "-T", "3600", "-R", str(MOVES_A_SECOND)]
        for weight, name in ((9, "move"), (1, "forget")):
            (self._folder / name).write_text(SCRIPTS[name])
            command += ["-f", f"{self._folder / name}@{weight}"]
        with open(self._folder / "pgbench.log", "ab") as log:
            self._bench = subprocess.Popen([*command, self._database], stdout=log, stderr=log)

    def stop_bench(self) -> None:
        """End pgbench."""
        if self._bench is not None:
            self._bench.kill()
            self._bench.wait()

    def work(self, seconds: float) -> None:
        """Commit transactions for a while, and alter a table now and then."""
        until = time.monotonic() + seconds
        with psycopg.connect(self._database) as db:
            db.execute("SET lock_timeout = '3s'")
            db.commit()
            while time.monotonic() < until:
                # A lock that pgbench has, or both wait for each other: it is tried no more.
                with suppress(psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                    self._transaction(db)
                    if self._chance.random() < 0.08:
                        self._alter(db)
                db.rollback()
                time.sleep(0.01)

    def _transaction(self, db: psycopg.Connection) -> None:
        for _ in range(self._chance.choice([1, 1, 2, 5, 30])):
            if self._chance.random() < 0.1:
                with db.transaction(force_rollback=True):  # a part of it that is taken back
                    self._change(db)
            self._change(db)
        if self._chance.random() < 0.1:
            db.rollback()
            return
        db.commit()
        self.done["transactions"] += 1

    def _change(self, db: psycopg.Connection) -> None:
        id, account = self._chance.randrange(self._new), self._chance.randint(1, ACCOUNTS)
        what = self._chance.random()
        if what < 0.3:
            self._insert_people(db, [self._next()])
        elif what < 0.45:
            db.execute("DELETE FROM people WHERE id = %s", [id])
        elif what < 0.65:  # the large column is not sent again
            db.execute("UPDATE people SET account = %s WHERE id = %s", [account, id])
        elif what < 0.75:
            db.execute("UPDATE people SET name = %s, bio = %s WHERE id = %s", [self._name(), self._bio(), id])
        elif what < 0.8:  # to another key
            db.execute("UPDATE people SET id = %s WHERE id = %s", [self._next(), id])
        elif what < 0.9:
            rate, note = self._chance.randint(0, 999999), self._name()
            db.execute(
                "UPDATE accounts SET rate = %s / 100.0, note = %s WHERE id = %s", [rate, note, account]
            )
        elif what < 0.95:
            db.execute("DELETE FROM accounts WHERE id = %s", [account])
        else:
            new = "INSERT INTO accounts VALUES (%s, 0, 1.5) ON CONFLICT (id) DO UPDATE SET balance = 0"
            db.execute(new, [account])

    def _alter(self, db: psycopg.Connection) -> None:
        kinds: list[Callable[[psycopg.Connection], None]] = [
            self._add_column, self._drop_column, self._widen, self._rename, self._vacuum, self._truncate,
            self._change_identity,
        ]  # fmt: skip
        kind = self._chance.choice(kinds)
        kind(db)
        db.commit()
        self.done[kind.__name__.strip("_").replace("_", " ")] += 1

    def _add_column(self, db: psycopg.Connection) -> None:
        table, name = self._chance.choice(["accounts", "people", "moves"]), f"extra_{self._next()}"
        kind = self._chance.choice(
            ["INT DEFAULT 7", "TEXT", "TIMESTAMPTZ DEFAULT clock_timestamp()", "JSONB"]
        )
        add = SQL("ALTER TABLE {} ADD COLUMN {} ").format(Identifier(table), Identifier(name))
        db.execute(add + SQL(kind))  # type: ignore[arg-type]
        db.commit()
        self._extra.append((table, name))

    def _drop_column(self, db: psycopg.Connection) -> None:
        if self._extra:
            table, name = self._chance.choice(self._extra)
            drop = SQL("ALTER TABLE {} DROP COLUMN {}").format(Identifier(table), Identifier(name))
            db.execute(drop)
            db.commit()
            self._extra.remove((table, name))

    def _widen(self, db: psycopg.Connection) -> None:
        digits, length = min(20, self._digits + 1), self._length + 5
        kind = SQL("NUMERIC({}, 2)").format(Literal(digits))
        db.execute(SQL("ALTER TABLE accounts ALTER COLUMN rate TYPE {}").format(kind))
        kind = SQL("VARCHAR({})").format(Literal(length))
        db.execute(SQL("ALTER TABLE accounts ALTER COLUMN note TYPE {}").format(kind))
        column = self._chance.choice(["balance", "id"])  # the first time each row is written anew
        db.execute(SQL("ALTER TABLE accounts ALTER COLUMN {} TYPE BIGINT").format(Identifier(column)))
        db.commit()
        self._digits, self._length = digits, length

    def _rename(self, db: psycopg.Connection) -> None:
        db.execute("ALTER TABLE other RENAME TO another")
        db.execute("CREATE TABLE other (LIKE another INCLUDING ALL)")
        db.execute("INSERT INTO other VALUES (1, 'new')")
        db.execute("DROP TABLE another")

    def _vacuum(self, db: psycopg.Connection) -> None:
        table = self._chance.choice(["accounts", "people", "moves"])
        db.commit()
        db.autocommit = True
        try:
            db.execute(SQL("VACUUM FULL {}").format(Identifier(table)))
        finally:
            db.autocommit = False

    def _truncate(self, db: psycopg.Connection) -> None:
        what = self._chance.choice(["moves", "moves, people", "people", "accounts"])
        db.execute(SQL("TRUNCATE {}").format(SQL(what)))  # type: ignore[arg-type]
        if "people" in what:
            self._insert_people(db, [self._next() for _ in range(PEOPLE // 2)])
        if what == "accounts":
            self._refill_accounts(db)

    def _change_identity(self, db: psycopg.Connection) -> None:
        kind = SQL(self._chance.choice(["FULL", "DEFAULT"]))  # type: ignore[arg-type]
        table = Identifier(self._chance.choice(["accounts", "people", "moves"]))
        db.execute(SQL("ALTER TABLE {} REPLICA IDENTITY {}").format(table, kind))

    def _refill_accounts(self, db: psycopg.Connection) -> None:
        rows = "SELECT n, n, n / 100.0, 'note ' || n FROM generate_series(1, %s) n"
        db.execute(f"INSERT INTO accounts (id, balance, rate, note) {rows}", [ACCOUNTS])

    def _insert_people(self, db: psycopg.Connection, ids: Any) -> None:
        rows = [(id, self._name(), self._chance.randint(1, ACCOUNTS), self._bio()) for id in ids]
        with db.cursor() as cursor:
            cursor.executemany("INSERT INTO people (id, name, account, bio) VALUES (%s, %s, %s, %s)", rows)

    def _next(self) -> int:
        self._new += 1
        return self._new

    def _name(self) -> str:
        return f"{self._chance.choice(NAMES)} {self._chance.choice(NAMES)} {self._chance.randrange(1000)}"

    def _bio(self) -> str | None:
        return self._chance.choice([None, "short", "long " * 700])
