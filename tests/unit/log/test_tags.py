from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.log import tags
from headwater.record import HEADERS


def test_a_key_and_a_text_are_never_the_same_tag() -> None:
    assert tags.key_tag(b"ada") != tags.text_tag("ada")
    assert tags.text_tag("ada") == tags.text_tag("ada")


def test_tags_travel_in_one_header_and_come_back() -> None:
    made = tags.header(["a", "b"], {"trace": b"x"})
    assert tags.texts(made) == ["a", "b"]
    assert tags.header([], None) is None


def test_the_records_that_were_read_have_their_key_and_their_texts() -> None:
    headers = pa.array([tags.header(["a"], None), None], HEADERS)
    found = tags.tags_of_records([pa.array(["k1", "k2"])], headers)
    assert found == [[tags.key_tag(b"k1"), tags.text_tag("a")], [tags.key_tag(b"k2")]]
    assert tags.tags_of_records([pa.array([7])], None) == [[tags.key_tag(b"7")]]


@pytest.mark.parametrize("value", [b"no json", b'{"a": 1}', b"[1, 2]", b""])
def test_a_header_of_others_under_that_name_holds_no_tags(value: bytes) -> None:
    assert tags.texts([(tags.HEADER, value)]) == []


@pytest.mark.parametrize("wrong", ["text", [1], [""], ["x" * 1001], 7])
def test_what_is_no_list_of_texts_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError):
        tags.checked_tags(wrong)  # type: ignore[arg-type]


def test_the_header_of_tags_is_not_for_others() -> None:
    with pytest.raises(UsageError, match="tags"):
        tags.header(["a"], {tags.HEADER: b"x"})


def test_a_column_of_headers_is_only_made_where_there_are_any() -> None:
    assert tags.headers_column([None, None]) is None
    assert tags.headers_column([None, [("a", b"b")]]) is not None
