"""Text and bytes: the whole value in one column."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater import topic
from headwater.formats import whole_value

TEXT = topic.create("t", "line STRING", format="text")
BYTES = topic.create("t", "body BINARY", format="bytes")


def text_of(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


@given(st.lists(st.binary() | st.text().map(str.encode)))
def test_not_a_byte_is_changed_and_what_is_no_text_is_named(values: list[bytes]) -> None:
    batch, bad = whole_value.decode(values, BYTES)
    assert (batch.column("body").to_pylist(), bad) == (values, [])
    batch, bad = whole_value.decode(values, TEXT)
    texts = [text_of(value) for value in values]
    assert batch.column("line").to_pylist() == [text for text in texts if text is not None]
    assert [at for at, _ in bad] == [at for at, text in enumerate(texts) if text is None]
    assert all("not UTF-8" in error.message for _, error in bad)
