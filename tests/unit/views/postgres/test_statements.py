"""The SQL of a sink: every name is quoted, and a name with a percent sign stays one. No server."""

from __future__ import annotations

from psycopg.sql import Composable

from headwater import schema as schemas
from headwater.values.keyed import KeyedSchema
from headwater.views.postgres.statements import Statements


def statements(columns: str, *key: str, table: str = "orders") -> Statements:
    return Statements(table, KeyedSchema(f'view "{table}"', schemas.parse(columns), key))


def text(statement: Composable) -> str:
    return statement.as_string(None)


def test_a_table_has_a_primary_key_whose_columns_are_never_null() -> None:
    made = text(statements("n INT, who STRING, at TIMESTAMP NOT NULL", "who").create)
    assert made == (
        'CREATE TABLE "orders" ("n" INTEGER, "who" TEXT NOT NULL, '
        '"at" TIMESTAMP WITH TIME ZONE NOT NULL, PRIMARY KEY ("who"))'
    )


def test_hostile_names_are_only_names() -> None:
    sql = statements('`a"b; DROP TABLE x` INT, n INT', 'a"b; DROP TABLE x', table='sales.o"rders')
    assert text(sql.target) == '"sales"."o""rders"'
    assert text(sql.changes) == '"sales"."o""rders_changes"'
    assert '"a""b; DROP TABLE x"' in text(sql.upsert)


def test_a_percent_sign_is_doubled_only_where_there_are_parameters() -> None:
    sql = statements("id INT, `100%` INT", "id", table="50%")
    assert '"100%%"' in text(sql.save_changes) and '"50%%_changes"' in text(sql.prune)
    assert '"100%"' in text(sql.upsert) and '"100%%"' not in text(sql.upsert)


def test_a_row_that_stays_the_same_is_not_written() -> None:
    made = text(statements("id INT, n INT, m INT", "id").upsert)
    assert made.endswith('WHERE (t."n", t."m") IS DISTINCT FROM (excluded."n", excluded."m")')
    assert text(statements("id INT", "id").upsert).endswith("DO NOTHING")


def test_an_index_has_nulls_first_but_for_the_key() -> None:
    made = text(statements("id INT, n INT", "id").create_index("by_n", ["n", "id"]))
    assert made == 'CREATE INDEX "by_n" ON "orders" ("n" NULLS FIRST, "id")'
