"""Errors as users meet them: a line, detail and hint, and which of them may pass by themselves."""

from __future__ import annotations

import inspect
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import errors
from headwater.errors import HeadwaterError, PipelineError, RowError, is_transient, nearest
from soaking import examples

CLASSES = [
    each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, HeadwaterError) and each.__module__ == errors.__name__
]


def drawn() -> dict[str, str | None]:
    """Return each class with the one that it is drawn below."""
    parents: dict[str, str | None] = {}
    above: dict[int, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"([ │├└─]+)([A-Z]\w+)(\s|$)", line):
            depth, name = len(match[1]), match[2]
            above = {at: each for at, each in above.items() if at < depth} | {depth: name}
            parents[name] = above[sorted(above)[-2]] if len(above) > 1 else None
    return parents


def test_the_tree_that_is_drawn_is_the_tree_there_is() -> None:
    there = {each.__name__: each.__base__.__name__ for each in CLASSES if each is not HeadwaterError}
    assert drawn() == {"HeadwaterError": None, **there}


@pytest.mark.parametrize(
    ("detail", "hint", "lines"),
    [
        (None, None, ["no room"]),
        ("the disk is full", None, ["no room", "detail: the disk is full"]),
        (None, "free some", ["no room", "hint: free some"]),
        ("it is full", "free some", ["no room", "detail: it is full", "hint: free some"]),
    ],
)
def test_an_error_is_told_as_a_line_then_detail_then_hint(
    detail: str | None, hint: str | None, lines: list[str]
) -> None:
    assert str(HeadwaterError("no room", detail=detail, hint=hint)).splitlines() == lines


def test_a_row_and_a_location_stand_before_the_detail_also_the_first_row() -> None:
    assert RowError("bad", detail="too long", row=0).detail == "row 0: too long"
    assert RowError("bad", row=3).detail == "row 3"
    assert RowError("bad", detail="too long").detail == "too long"
    assert RowError("bad").detail is None
    assert RowError("bad", detail="too long", row=3).reason == "too long"
    assert PipelineError("bad", detail="why", location="shop.py:3").detail == "shop.py:3: why"


def test_only_what_is_away_may_pass_and_not_what_says_no() -> None:
    plain = [each for each in CLASSES if each.__init__ is HeadwaterError.__init__]
    found = {each.__name__ for each in plain if is_transient(each("away"))}
    assert found == {"LogUnavailable", "SinkUnavailable", "DiskFull"}
    assert not is_transient(None)


@examples(60)
@given(st.lists(st.text("abc", min_size=1, max_size=6), max_size=5), st.text("abc", max_size=6))
def test_a_hint_names_a_known_word_and_the_word_itself_where_it_is_known(known: list[str], word: str) -> None:
    hint = nearest(word, known)
    assert hint is None or hint in {f'did you mean "{each}"?' for each in known}
    if word in known:
        assert hint == f'did you mean "{word}"?'
