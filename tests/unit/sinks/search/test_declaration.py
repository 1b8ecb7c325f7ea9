"""What an index is declared to hold."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.sinks.search.declaration import declare_search

COLUMNS = "id BIGINT, name STRING, about STRING, anything VARIANT"


def test_the_columns_that_are_searched_are_named() -> None:
    assert declare_search("index", COLUMNS, "id", "name").text == ("name",)
    assert declare_search("index", COLUMNS, ("id",), ["name", "about"]).text == ("name", "about")


@pytest.mark.parametrize(
    ("text", "message"),
    [([], "no column to search"), ("nam", 'no column "nam"'), ("id", "it is BIGINT"),
     ("anything", "it is VARIANT"), (["name", "name"], "a column twice")],
)  # fmt: skip
def test_a_column_that_cannot_be_searched_is_refused(text: str | list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        declare_search("index", COLUMNS, "id", text)
