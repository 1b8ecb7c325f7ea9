"""What can be built anew, and what is refused before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater
from figures_kit import commit, orders_shop
from headwater import Pipeline
from headwater.api.rebuild import Rebuilt, check_rebuildable, rebuild_progress
from headwater.errors import PipelineError, UsageError


def test_only_a_view_is_built_anew(shop: Pipeline) -> None:
    check_rebuildable(shop, "seen")
    with pytest.raises(UsageError, match='source "orders" cannot be built anew'):
        headwater.rebuild(shop, "orders")
    with pytest.raises(UsageError, match='source "orders" cannot be built anew'):
        headwater.reset(shop, "orders", "latest")


def test_a_view_that_there_is_not_is_refused_with_the_nearest(shop: Pipeline) -> None:
    with pytest.raises(PipelineError, match='no node "sene"') as refused:
        headwater.rebuild(shop, "sene")
    assert "seen" in str(refused.value.hint)


def test_a_pipeline_that_does_not_fit_together_is_not_built_anew(broken: Pipeline) -> None:
    with pytest.raises(PipelineError, match="oders"):
        headwater.rebuild(broken, "seen")


def test_what_was_built_tells_its_version() -> None:
    assert Rebuilt("seen", 3).to_dict() == {"view": "seen", "version": 3}


def test_progress_is_the_part_of_the_input_that_the_newest_version_has_processed(tmp_path: Path) -> None:
    shop = orders_shop(tmp_path)
    with headwater.open(shop.log) as log:
        assert rebuild_progress(shop, "seen", log) == 1.0
        commit(shop, "seen", 1)
        assert rebuild_progress(shop, "seen", log) == 0.5
        assert rebuild_progress(shop, "copies", log) is None, "it has no version"
