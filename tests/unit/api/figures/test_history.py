"""Figures over time, by the name of a node or of the whole pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater
from figures_kit import note, orders_shop
from headwater.errors import HeadwaterError


def test_the_figures_of_a_node_a_source_and_the_whole_are_read_by_name(tmp_path: Path) -> None:
    shop = orders_shop(tmp_path)
    note(shop)
    assert headwater.history(shop, "seen", since=30, points=1).lag == (7,)
    assert headwater.history(shop, "orders", since=30, points=1).rate == (12.5,)
    assert headwater.history(shop, since=30, points=1).rate == (12.5,)


def test_a_node_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HeadwaterError, match="sen"):
        headwater.history(orders_shop(tmp_path), "sen")
