"""Producers whose clocks are not believed."""

from __future__ import annotations

from headwater import ClockSkew
from headwater.cli.formats.clocks import ahead_texts


def test_a_producer_is_told_once_by_its_furthest() -> None:
    found = [ClockSkew("orders", 0, "till", 2_500_000), ClockSkew("orders", 1, "till", 3_600_000_000)]
    assert ahead_texts(found) == [
        'producer "till" of topic "orders" is 1 h ahead of time; its events count from their receipt'
    ]


def test_producers_come_in_the_order_of_topics_and_names() -> None:
    found = [ClockSkew("b", 0, "x", 1), ClockSkew("a", 0, "y", 1), ClockSkew("a", 0, "x", 1)]
    assert [text.split('"')[1:4:2] for text in ahead_texts(found)] == [["x", "a"], ["y", "a"], ["x", "b"]]


def test_one_without_a_name_is_a_producer_too() -> None:
    [text] = ahead_texts([ClockSkew("orders", 0, "", 60_000_000)])
    assert text.startswith('a producer of topic "orders" is 1 min ahead')


def test_nobody_ahead_is_nothing_to_say() -> None:
    assert ahead_texts([]) == []
