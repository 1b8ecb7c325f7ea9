"""What a person types, and what is looked for."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.sinks.search.embedded.query import expression

COLUMNS = {"name": "c0", "about": "c1"}
DOCUMENTS = {1: ("Ada Lovelace", "countess of numbers"), 2: ("Grace Hopper", "admiral, love of numbers"),
             3: ("Renée King", "at 12:30")}  # fmt: skip


def index() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5(c0, c1, tokenize='unicode61 remove_diacritics 2')")
    for number, (name, about) in DOCUMENTS.items():
        db.execute("INSERT INTO words (rowid, c0, c1) VALUES (?, ?, ?)", (number, name, about))
    return db


@pytest.mark.parametrize(
    ("text", "found"),
    [("ada lovelace", [1]), ("ada hopper", []), ("ADA", [1]), ("renee", [3]), ("ada OR grace", [1, 2]),
     ("ada lovelace OR grace king", [1]), ("love*", [1, 2]), ("love", [2]), ("numbers -ada", [2]),
     ('"of numbers"', [1, 2]), ('"numbers of"', []), ("name:love*", [1]), ("about:love", [2]),
     ("12:30", [3]), ("admiral, & love", [2]), ("-ada numbers OR renée", [2, 3]), ("AND NOT", []),
     ("NEAR(ada lovelace)", []), ('name:"ada love"*', [1]), ("ada\0lovelace", [1])],
)  # fmt: skip
def test_words_are_found(text: str, found: list[int]) -> None:
    rows = index().execute(
        "SELECT rowid FROM words WHERE words MATCH ? ORDER BY 1", (expression(text, COLUMNS),)
    )
    assert [number for (number,) in rows] == found


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no word"), ("  ", "no word"), ("!!! *", "no word"),
     ('"ada', "not closed"), ("-ada", "what not to find"),
     ("ada OR", "side of OR"), ("word " * 65, "too long"), ("ada \ud800", "not text")],
)  # fmt: skip
def test_a_text_that_cannot_be_looked_for_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        expression(text, COLUMNS)


@given(st.text(st.one_of(st.sampled_from('ab"*:-()^{}+ \\0'), st.characters(codec="utf-8")), max_size=30))
def test_whatever_is_typed_is_looked_for_or_refused_in_words(text: str) -> None:
    try:
        query = expression(text, COLUMNS)
    except UsageError:
        return
    index().execute("SELECT rowid FROM words WHERE words MATCH ?", (query,)).fetchall()
