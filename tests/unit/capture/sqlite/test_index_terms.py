"""What unique indexes are over, read from the statements that make them."""

from __future__ import annotations

import pytest

from headwater.capture.sqlite.index_terms import generated_expressions, index_terms


@pytest.mark.parametrize(
    ("sql", "terms", "where"),
    [
        ("CREATE UNIQUE INDEX i ON t(a)", ["a"], None),
        ("CREATE UNIQUE INDEX i ON t (a ASC, b DESC)", ["a", "b"], None),
        ("CREATE UNIQUE INDEX i ON t (a || ',' || b, f(a, (b)))", ["a || ',' || b", "f(a, (b))"], None),
        ('CREATE UNIQUE INDEX "i (x)" ON "t (y)" ("a)" , [b,c], `d`)', ['"a)"', "[b,c]", "`d`"], None),
        ("CREATE UNIQUE INDEX i ON t (x'00' , a ->> '$.b') where a<>2 AND b IN (1, 2)",
         ["x'00'", "a ->> '$.b'"], "a<>2 AND b IN (1, 2)"),
        ("CREATE UNIQUE INDEX i ON t -- of (all)\n (a /* , */ COLLATE NOCASE desc)",
         ["a /* , */ COLLATE NOCASE"], None),
    ],
)  # fmt: skip
def test_terms_and_conditions_are_found(sql: str, terms: list[str], where: str | None) -> None:
    assert index_terms(sql) == (terms, where)


def test_generated_columns_are_found_with_their_expressions() -> None:
    sql = """CREATE TABLE "t" (a DECIMAL(10, 2) CHECK (CAST(a AS INT) > 0), "as" TEXT DEFAULT ('x'),
        b AS (a + 1), c INT GENERATED ALWAYS AS (f(a, ')') || "as") STORED NOT NULL, UNIQUE (a, b))"""
    found = generated_expressions(sql, ["a", "as", "b", "c"])
    assert found == {"b": "(a + 1)", "c": """(f(a, ')') || "as")"""}
