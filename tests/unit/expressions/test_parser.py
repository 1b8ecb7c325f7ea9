"""What is read of an expression, and what is refused with what is missing."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.expressions import parse


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n IN ()", "IN has no values"),
        ("n BETWEEN 1", '"AND" is missing'),
        ("n IS 5", '"NULL" is missing'),
        ("CASE n END", 'CASE has no "WHEN"'),
        ("CASE WHEN n = 1 THEN 2", '"END" is missing'),
        ("n = 1 AND", "is missing"),
        ("n = 1 2", '"2" is too much'),
    ],
)
def test_what_is_missing_is_named(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert words in str(caught.value)


def test_columns_of_conditions_are_known() -> None:
    text = "CASE WHEN a IN (b, 1) THEN c LIKE 'x' ELSE NOT d END AND `and` BETWEEN e AND f"
    assert parse(text).columns == {"a", "b", "c", "d", "and", "e", "f"}
