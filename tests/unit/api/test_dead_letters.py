"""Records that were set aside, read and appended again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import headwater
from headwater import Pipeline
from headwater.api.dead_letters import DeadLetter
from headwater.engine.failure.dead_letters import DeadLetters
from headwater.engine.failure.rejected_row import RecordOffset, RejectedRow
from headwater.errors import PipelineError, UsageError


def test_dead_letters_are_listed_and_appended_again_once(shop: Pipeline) -> None:
    with headwater.open(shop.log) as log:
        DeadLetters(log, "shop", shop.nodes[0]).add(
            [RejectedRow("ValueError: no", RecordOffset("orders", 0, 1))]
        )
    [letter] = headwater.dead_letters(shop)
    assert (letter.node, letter.topic, letter.offset) == ("seen", "orders", 1)
    assert str(letter.to_dict()["at"]).endswith("Z")
    assert headwater.dead_letters(shop, "seen") == [letter]
    assert (headwater.redrive(shop, "seen"), headwater.redrive(shop, "seen")) == (1, 0)
    with pytest.raises(UsageError, match='source "orders" sets no records aside'):
        headwater.dead_letters(shop, "orders")


def test_a_node_that_set_nothing_aside_has_no_letters(shop: Pipeline) -> None:
    assert headwater.dead_letters(shop) == []
    assert headwater.redrive(shop, "seen") == 0


def test_only_a_node_of_the_pipeline_can_be_redriven(shop: Pipeline) -> None:
    with pytest.raises(UsageError, match='source "orders" sets no records aside'):
        headwater.redrive(shop, "orders")
    with pytest.raises(PipelineError, match='no node "sene"'):
        headwater.redrive(shop, "sene")


def test_a_letter_from_no_one_place_is_told_as_json() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    told = DeadLetter("seen", None, None, None, "ValueError: no", None, at).to_dict()
    assert (told["topic"], told["record"], told["at"]) == (None, None, "2026-01-02T00:00:00Z")
