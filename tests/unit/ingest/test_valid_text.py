"""Whether bytes are text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.ingest.valid_text import is_text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_whatever_python_encodes_is_text(text: str) -> None:
    assert is_text(text.encode())


def test_a_part_of_a_letter_is_none() -> None:
    assert not is_text("ö".encode()[:1])
