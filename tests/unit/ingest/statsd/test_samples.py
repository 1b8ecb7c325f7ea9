"""What follows the kind of a line of StatsD."""

from __future__ import annotations

import pytest

from headwater.ingest.statsd.samples import Extension, number, parse_extension


def test_tags_are_a_set_in_one_order() -> None:
    assert parse_extension(b"|#b,a:1") == parse_extension(b"|#a:1,b,b") == Extension(tags="a:1,b")


@pytest.mark.parametrize("text", [b"|@0", b"|@1.5", b"|@x", b"|?", b"|@"])
def test_a_rate_that_is_none_is_malformed(text: bytes) -> None:
    assert parse_extension(text) is None


@pytest.mark.parametrize("text", ["", "nan", "1e999", "0x10", "1\n", "1_0"])
def test_only_finite_decimals_are_numbers(text: str) -> None:
    assert number(text) is None
