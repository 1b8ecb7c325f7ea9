"""Which tables are kept in a database, in which versions, and how far each has got.

How far a version has got is in ``headwater_sinks``. Which version readers see is told by the comment of the
table itself, because MySQL renames tables in no transaction with anything else. Invariant: a table without
our comment is its user's: it may be filled, and is never renamed or dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater import schema as schemas
from headwater.errors import SchemaError, SinkRefused, UsageError
from headwater.sinks import crash
from headwater.sinks.fencing import dropped
from headwater.sinks.mysql import statements
from headwater.sinks.mysql.statements import TableStatements, quoted
from headwater.stores.mysql.connection import Transaction
from headwater.values.keyed import KeyedSchema

_MARK = re.compile(r'Headwater: rows of ".*", version (\d+)', re.DOTALL)
_EXACT = ("_nopad_bin", "_0900_bin")
"""How the names of collations end that tell every two texts apart, also by the spaces at their ends."""


@dataclass(frozen=True)
class TableProgress:
    """How far a version of a table has got."""

    batch: int
    epoch: int
    filled: bool
    adopted: bool


def mark(name: str, version: int) -> str:
    """Return the comment by which the table of a version is known."""
    return f'Headwater: rows of "{name}", version {version}'


def versions(db: Transaction, name: str) -> dict[str, int | None]:
    """Return the tables of a name that are there, and which version each is; None if it is its user's."""
    beside = f"{name}@"
    found = db.rows(statements.TABLES, (name, len(beside), beside))
    matches = {table: _MARK.fullmatch(comment or "") for table, comment, _ in found}
    return {table: int(match[1]) if match else None for table, match in matches.items()}


def published(db: Transaction, name: str) -> int:
    """Return the version that readers see; 1 where there is none, or a table of the user's own."""
    return versions(db, name).get(name) or 1


def prepare(db: Transaction) -> None:
    """Make the catalog if it is not there; refuse a table of its name that is not ours."""
    db.rows(statements.CREATE_CATALOG)
    found = db.rows(statements.TABLES, ("headwater_sinks", 1, ""))
    if [comment for name, comment, _ in found if name == "headwater_sinks"] != [statements.CATALOG_MARK]:
        raise UsageError(
            'table "headwater_sinks" is not Headwater\'s, or of another version of it',
            detail="its comment does not say so; nothing was changed",
            hint="use another database",
        )


def ready(db: Transaction, name: str, version: int, keyed: KeyedSchema) -> None:
    """Make the table of a version if it is not there, and refuse one that is not what it was."""
    prepare(db)
    there = versions(db, name)
    if version < (there.get(name) or 1):
        raise dropped(keyed.what, version)
    progress = find(db, name, version, keyed)
    if progress is None:
        progress = _add(db, name, version, keyed, there)
    table = table_of(there, name, version)
    sql = TableStatements(table, keyed)
    if table not in there:
        if progress.batch >= 0:
            raise _missing(table, keyed, "is gone")
        db.rows(sql.create(mark(name, version), mariadb=db.is_mariadb))
        crash.point("mysql: table made")
    elif not progress.adopted and there[table] != version:
        raise _missing(table, keyed, "is another one now")
    elif progress.filled and not db.rows(sql.any)[0][0]:
        raise _missing(table, keyed, "is empty")


def table_of(there: dict[str, int | None], name: str, version: int) -> str:
    """Return the name that the table of a version has now."""
    return name if version == (there.get(name) or 1) else f"{name}@{version}"


def find(
    db: Transaction, name: str, version: int, keyed: KeyedSchema, *, lock: bool = False
) -> TableProgress | None:
    """Return how far a version has got, if it is there; ``lock`` keeps others from changing that."""
    rows = db.rows(statements.FIND + (" FOR UPDATE" if lock else ""), (name, version))
    if not rows:
        return None
    declared, key, batch, epoch, filled, adopted = rows[0]
    if (declared, json.loads(key)) != (schemas.ddl(keyed.schema), list(keyed.key)):
        raise SchemaError(
            f"version {version} of {keyed.what} has other columns or another key",
            detail=f"it has `{declared}` by ({', '.join(json.loads(key))})",
            hint="rebuild the node, or write to another table",
        )
    return TableProgress(int(batch), int(epoch), bool(filled), bool(adopted))


def check_replaceable(db: Transaction, name: str) -> None:
    """Refuse a table that was there before its sink."""
    there = versions(db, name)
    if name in there and there[name] is None:
        raise UsageError(
            f'table "{name}" cannot be replaced by another version',
            detail="it was there before its sink, which fills it and does no more",
            hint="name a table that is not there yet, under another name of the node, which begins anew",
        )


def drop_others(db: Transaction, name: str) -> None:
    """Drop every version but the one that readers see."""
    prepare(db)
    for table, version in versions(db, name).items():
        if version is not None and table != name:
            db.rows(f"DROP TABLE {quoted(table)}")
    db.rows(statements.FORGET, (name, published(db, name)))


def switch(db: Transaction, name: str, version: int) -> None:
    """Let a version and the one that readers see change places: MySQL renames both at once."""
    there, built = versions(db, name), quoted(f"{name}@{version}")
    if there.get(name) is None:
        db.rows(f"RENAME TABLE {built} TO {quoted(name)}")
    elif there[name] != version:
        old = quoted(f"{name}@{there[name]}")
        db.rows(f"RENAME TABLE {quoted(name)} TO {old}, {built} TO {quoted(name)}")


def _add(
    db: Transaction, name: str, version: int, keyed: KeyedSchema, there: dict[str, int | None]
) -> TableProgress:
    adopted = version == 1 and name in there and there[name] is None
    if adopted:
        _check_adopted(db, name, keyed)
    elif table_of(there, name, version) in there:
        raise SinkRefused(
            f"{keyed.what} has rows, but the record of how far they go is gone",
            detail="headwater_sinks has no line of it",
            hint="restore headwater_sinks, or drop the table and compute the node anew",
        )
    declared = (schemas.ddl(keyed.schema), json.dumps(keyed.key))
    db.rows(statements.ADD, (name, version, *declared, adopted))
    return TableProgress(-1, 0, False, adopted)


def _check_adopted(db: Transaction, name: str, keyed: KeyedSchema) -> None:
    """Refuse a table of the user's that has not the columns, or is unique by anything but the key."""
    collations: dict[str, str | None] = dict(db.rows(statements.COLUMNS, (name,)))
    wrong = next(_unfit(collations, db.rows(statements.UNIQUE, (name,)), keyed), None)
    if wrong:
        raise SchemaError(
            f"{keyed.what} is there, and is not as its sink needs it",
            detail=wrong,
            hint="name a table that is not there: it is made",
        )


def _unfit(
    collations: Mapping[str, str | None], unique: Sequence[tuple[Any, ...]], keyed: KeyedSchema
) -> Iterator[str]:
    """Yield what would be lost in a table, given the columns of its unique keys and how they are compared."""
    yield from (f'it has no column "{each}"' for each in keyed.schema.names if each not in collations)
    keys: dict[str, set[str]] = {}
    for index, column, _ in unique:
        keys.setdefault(index, set()).add(column)
    if list(keys.values()) != [set(keyed.key)]:
        yield "its only unique key has to be the sink's"
    yield from (f'its key has only the beginning of column "{column}"' for _, column, part in unique if part)
    for each in keyed.key:  # where two keys count as one, the rows of one would be lost
        collation = collations[each]
        if collation is not None and not collation.endswith(_EXACT):
            yield f'column "{each}" of its key is compared by {collation}: keys that differ may be the same'


def _missing(table: str, keyed: KeyedSchema, how: str) -> SinkRefused:
    return SinkRefused(
        f'table "{table}" of {keyed.what} {how}',
        detail="rows were committed to it",
        hint="restore it, or rebuild the node",
    )
