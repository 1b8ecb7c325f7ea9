"""The tables of a database as its catalog has them: columns, types, and what identifies their rows.

Invariant: a table has a key only if the server will tell which row an update or a deletion is of; publishing
a table without one would make the application's own updates fail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from headwater.capture.change import SourceColumn, SourceTable
from headwater.capture.postgres.columns import Decoder, SqlType, decoder
from headwater.capture.postgres.pgoutput import Relation
from headwater.capture.postgres.row_changes import Layout

_TABLES: Final = """
    SELECT c.oid::int8 AS number, n.nspname AS schema, c.relname AS name, c.relkind::text AS kind,
           n.nspname = current_schema() AS own, c.relpersistence = 'p' AS logged
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
      AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
      AND (%(number)s::oid IS NULL OR c.oid = %(number)s)
    ORDER BY 2, 3
"""
_COLUMNS: Final = """
    SELECT a.attrelid::int8 AS number, a.attname AS name, a.atttypid::int8 AS type, a.atttypmod AS modifier,
           NOT a.attnotnull AS nullable, a.attgenerated <> '' AS generated,
           format_type(a.atttypid, a.atttypmod) AS sql_type
    FROM pg_attribute a WHERE a.attrelid = ANY(%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attrelid, a.attnum
"""
_KEYS: Final = """
    SELECT i.indrelid::int8 AS number, array_agg(a.attname::text ORDER BY k.place) AS key
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
         CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
         JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    WHERE i.indrelid = ANY(%s::oid[]) AND i.indisvalid AND i.indimmediate AND k.place <= i.indnkeyatts
      AND (i.indisprimary AND c.relreplident IN ('d', 'f') OR i.indisreplident AND c.relreplident = 'i')
    GROUP BY i.indrelid
"""
_TYPES: Final = """
    SELECT oid::int8 AS number, typname AS name, typtype::text AS kind, typbasetype::int8 AS parent,
           typtypmod AS modifier, typnamespace = 'pg_catalog'::regnamespace AS built_in,
           CASE WHEN typcategory = 'A' AND typlen = -1 THEN typelem::int8 ELSE 0 END AS element
    FROM pg_type WHERE oid = ANY(%s::oid[])
"""
_NAMES: Final = """
    SELECT format_type(t.number::oid, t.modifier) AS name, current_schema() AS schema
    FROM unnest(%s::int8[], %s::int4[]) WITH ORDINALITY AS t(number, modifier, place) ORDER BY t.place
"""


@dataclass(frozen=True)
class PostgresTable:
    """A table with what the catalog knows beside its columns."""

    number: int
    schema: str
    name: str
    partitioned: bool
    own: bool
    logged: bool
    layout: Layout

    @property
    def title(self) -> str:
        """The name by which it is captured."""
        return title(self.schema, self.name, self.own)

    def captured(self) -> Layout:
        """Return what changes and chunks have of it: no generated columns, which the server does not send."""
        pairs = zip(self.layout.table.columns, self.layout.decoders, strict=True)
        sent = [(column, each) for column, each in pairs if not column.generated]
        table = SourceTable(self.title, tuple(column for column, _ in sent), self.layout.table.key)
        return Layout(table, tuple(each for _, each in sent))


class Catalog:
    """Reads the catalog; what it has read of types is kept."""

    def __init__(self) -> None:
        self._types: dict[int, SqlType] = {}

    def tables(self, db: psycopg.Connection, number: int | None = None) -> dict[str, PostgresTable]:
        """Return every table, or that of a number, by the name that it is captured by."""
        found = _rows(db, _TABLES, {"number": number})
        numbers = [each["number"] for each in found]
        columns: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for column in _rows(db, _COLUMNS, [numbers]):
            columns[column["number"]].append(column)
        keys = {each["number"]: tuple(each["key"]) for each in _rows(db, _KEYS, [numbers])}
        self._learn(db, (column["type"] for each in columns.values() for column in each))
        made = [self._table(each, columns[each["number"]], keys.get(each["number"], ())) for each in found]
        return {each.title: each for each in made}

    def layout(self, db: psycopg.Connection, relation: Relation) -> Layout:
        """Return how a table is that the stream has described, which may be older than the catalog."""
        now = next(iter(self.tables(db, relation.number).values()), None)
        self._learn(db, (column.type for column in relation.columns))
        kinds = [
            [column.type for column in relation.columns],
            [column.modifier for column in relation.columns],
        ]
        names = _rows(db, _NAMES, kinds)
        known = {column.name: column for column in now.layout.table.columns} if now is not None else {}
        decoders = tuple(self._decoder(column.type, column.modifier) for column in relation.columns)
        columns = tuple(
            SourceColumn(column.name, each.type, name["name"], _nullable(known.get(column.name)))
            for column, each, name in zip(relation.columns, decoders, names, strict=True)
        )
        own = bool(names) and names[0]["schema"] == relation.schema
        key = _key(relation, now.layout.table.key if now is not None else ())
        return Layout(SourceTable(title(relation.schema, relation.name, own), columns, key), decoders)

    def _table(
        self, table: dict[str, Any], columns: list[dict[str, Any]], key: tuple[str, ...]
    ) -> PostgresTable:
        decoders = tuple(self._decoder(each["type"], each["modifier"]) for each in columns)
        made = tuple(
            SourceColumn(each["name"], kind.type, each["sql_type"], each["nullable"], each["generated"])
            for each, kind in zip(columns, decoders, strict=True)
        )
        schema, name, own = table["schema"], table["name"], table["own"]
        described = SourceTable(title(schema, name, own), made, key if table["logged"] else ())
        partitioned = table["kind"] == "p"
        return PostgresTable(
            table["number"], schema, name, partitioned, own, table["logged"], Layout(described, decoders)
        )

    def _decoder(self, number: int, modifier: int) -> Decoder:
        return decoder(number, modifier, self._types.get)

    def _learn(self, db: psycopg.Connection, numbers: Iterable[int]) -> None:
        """Read the types that are not known yet, and what they are made of."""
        missing = set(numbers) - self._types.keys() - {0}
        while missing:
            found = {row.pop("number"): SqlType(**row) for row in _rows(db, _TYPES, [sorted(missing)])}
            self._types.update(found)
            made_of = {part for each in found.values() for part in (each.parent, each.element)}
            missing = made_of - self._types.keys() - {0}


def title(schema: str, name: str, own: bool) -> str:
    """Return the name of a table: with its schema, unless that is the default one."""
    return name if own and "." not in name else f"{schema}.{name}"


def _nullable(column: SourceColumn | None) -> bool:
    return column is None or column.nullable


def _key(relation: Relation, now: tuple[str, ...]) -> tuple[str, ...]:
    """Return what identifies rows; where all columns are sent, that is the primary key as it is now."""
    names = [column.name for column in relation.columns]
    if relation.identity == "f":
        return now if set(now) <= set(names) else ()
    sent = {column.name for column in relation.columns if column.identifies}
    # In the order of the index, where it is still the same: the stream tells only which columns.
    return now if set(now) == sent else tuple(name for name in names if name in sent)


def _rows(
    db: psycopg.Connection, query: str, values: Sequence[object] | Mapping[str, object]
) -> list[dict[str, Any]]:
    with db.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        return cursor.execute(query, values).fetchall()
