"""Which names a query reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.statement import is_query, relations


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        ("SELECT * FROM orders", "orders"),
        ("select * from orders o join customers as c on o.id = c.id", "orders customers"),
        ("SELECT * FROM orders LEFT OUTER JOIN customers USING (id, day), clicks", "orders customers clicks"),
        ("SELECT clicks FROM searches AS orders", "searches"),
        ("SELECT count(*) AS clicks FROM searches GROUP BY customers, orders", "searches"),
        ("SELECT * FROM orders WHERE customer IN (SELECT id FROM customers)", "orders customers"),
        ("SELECT (SELECT max(n) FROM clicks) FROM orders", "clicks orders"),
        ("SELECT * FROM (SELECT * FROM orders) o", "orders"),
        ("SELECT * FROM (orders o JOIN customers c ON o.id = c.id)", "orders customers"),
        ("SELECT * FROM orders UNION ALL SELECT * FROM clicks ORDER BY a, b", "orders clicks"),
        ("SELECT * FROM orders -- JOIN clicks\n", "orders"),
        ("SELECT /* FROM clicks */ * FROM orders", "orders"),
        ("SELECT ' FROM clicks ', \" FROM clicks \", 'it\\'s FROM clicks' FROM orders", "orders"),
        ("SELECT `FROM clicks` FROM `orders`", "orders"),
        ("SELECT * FROM orders JOIN orders o2", "orders"),
        ("WITH big AS (SELECT * FROM orders) SELECT * FROM big JOIN clicks", "orders clicks"),
        ("WITH a AS (SELECT * FROM orders), b AS (SELECT * FROM a) SELECT * FROM b", "orders"),
        ("WITH a (x, y) AS (SELECT * FROM orders) SELECT * FROM A", "orders"),
        ("WITH orders AS (SELECT * FROM orders WHERE n > 1) SELECT * FROM orders", "orders"),
        ("WITH orders AS (SELECT 1) SELECT * FROM orders", ""),
        ("WITH RECURSIVE t AS (SELECT * FROM orders UNION ALL SELECT * FROM t) SELECT * FROM t", "orders"),
        ("WITH a AS (SELECT 1) FROM orders SELECT *", "orders"),
        ("FROM orders SELECT *", "orders"),
        ("FROM orders |> WHERE n > 1 |> JOIN customers ON true |> DROP a, b", "orders customers"),
        ("TABLE orders", "orders"),
        ("SELECT * FROM explained(TABLE(orders))", "orders"),
        ("SELECT extract(day FROM at), trim(BOTH FROM name), n FROM orders", "orders"),
        ("SELECT a IS NOT DISTINCT FROM clicks FROM orders", "orders"),
        ("SELECT DISTINCT id FROM orders", "orders"),
        ("SELECT * FROM range(10), orders", "orders"),
        ("SELECT * FROM spark_catalog.db.clicks, orders", "orders"),
        ("SELECT * FROM orders o, LATERAL explode(o.items) AS t(a, b)", "orders"),
        ("SELECT * FROM orders LATERAL VIEW explode(tags) t AS k, v WHERE k > 1", "orders"),
        ("SELECT * FROM orders, LATERAL (SELECT * FROM clicks c WHERE c.id = orders.id)", "orders clicks"),
        ("SELECT * FROM VALUES (true, null), (false, 1) AS t(a, b)", ""),
        ("SELECT o.from, o.join FROM orders o", "orders"),
        ("SELECT * FROM orders WINDOW w AS (PARTITION BY a), x AS (PARTITION BY b)", "orders"),
        ("SELECT 1", ""),
        ("SELECT * FROM", ""),
        ("SELECT * FROM ((", ""),
        ("SELECT 1)) FROM orders", "orders"),
    ],
)
def test_only_what_is_selected_from_is_read(statement: str, read: str) -> None:
    assert relations(statement) == tuple(read.split())


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        ("SELECT 1", True),
        ("  -- why\n (with a as (select 1) select * from a)", True),
        ("TABLE orders", True),
        ("INSERT INTO orders SELECT 1", False),
        ("DROP TABLE orders", False),
        ("'SELECT'", False),
        ("", False),
    ],
)
def test_a_query_begins_as_one(statement: str, answer: bool) -> None:
    assert is_query(statement) is answer


NAMES = ["orders", "clicks", "customers"]
Query = tuple[str, list[str]]
"""A query, and what it reads in the order of the text."""


def relation(inner: st.SearchStrategy[Query]) -> st.SearchStrategy[Query]:
    plain = st.sampled_from(NAMES).map(lambda name: (name, [name]))
    quoted = st.sampled_from(NAMES).map(lambda name: (f"`{name}` AS customers", [name]))
    nested = inner.map(lambda query: (f"({query[0]}) orders", query[1]))
    return st.one_of(plain, quoted, nested)


@st.composite
def selecting(draw: st.DrawFn, inner: st.SearchStrategy[Query]) -> Query:
    parts = draw(st.lists(relation(inner), min_size=1, max_size=3))
    links = st.sampled_from([", ", " JOIN ", " LEFT JOIN ", "\n  -- FROM clicks\n CROSS JOIN "])
    text = parts[0][0] + "".join(draw(links) + part for part, _ in parts[1:])
    columns = draw(st.sampled_from(["*", "orders, clicks", "'FROM orders'", "extract(day FROM clicks)"]))
    rest = draw(st.sampled_from(["", " WHERE orders > 1", " GROUP BY orders, clicks", " ORDER BY a, clicks"]))
    return f"SELECT {columns} FROM {text}{rest}", [name for _, read in parts for name in read]  # noqa: S608


QUERIES = st.recursive(selecting(st.nothing()), selecting, max_leaves=4)


@given(QUERIES)
def test_queries_within_queries_are_read_through(query: Query) -> None:
    text, read = query
    assert relations(text) == tuple(dict.fromkeys(read))


@given(
    st.lists(
        st.sampled_from([*"(),.'\"`1", "SELECT", "FROM", "JOIN", "WITH", "AS", "orders", "--", "/*", "\n"])
    )
)
def test_no_text_is_too_broken_to_be_looked_at(words: list[str]) -> None:
    assert all(name in " ".join(words) for name in relations(" ".join(words)))
