"""Rows that lie as JSON text at a place: what is none of them is told by its place."""

from __future__ import annotations

from headwater.sinks.json_rows import read_rows
from headwater.values.keyed import declare

KEYED = declare("cache", "shop STRING NOT NULL, item BIGINT NOT NULL, n INT NOT NULL", ("shop", "item"))


def test_rows_are_returned_in_their_order() -> None:
    texts = [b'{"_version":1,"shop":"a","item":1,"n":3}', b'{"shop":"a","item":2,"n":4}']
    rows, others = read_rows(['["a",1]', '["a",2]'], texts, KEYED)
    assert ([row["n"] for row in rows.to_pylist()], others) == ([3, 4], [])


def test_what_is_no_row_or_lies_elsewhere_is_told_with_its_place() -> None:
    texts = [b"OK", b'{"shop":"a","item":2,"n":4}', b'{"shop":"a","item":9,"n":4}', b'{"shop":"a","item":4}']
    rows, others = read_rows(['["a",1]', '["a",2]', '["a",3]', '["a",4]'], texts, KEYED)
    assert [row["item"] for row in rows.to_pylist()] == [2]
    assert [each["place"] for each in others] == ['["a",1]', '["a",3]', '["a",4]']
    assert others[0]["text"] == "OK"


def test_nothing_is_nothing() -> None:
    rows, others = read_rows([], [], KEYED)
    assert (len(rows), others) == (0, [])
