"""Whether a view holds the rows that it should; nothing is left out in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import headwater
from headwater import Pipeline, targets
from headwater.api.verify import followers, verifiable
from headwater.errors import PipelineError, UsageError


def test_a_view_is_compared_with_the_rows_that_it_should_hold(shop: Pipeline) -> None:
    rows = [{"id": 1, "item": "tea"}, {"id": 2, "item": "gin"}, {"id": 3, "item": "ale"}]
    verdict = headwater.compare(shop, "seen", rows)
    assert (verdict.kind, verdict.ok) == ("view", False)
    assert verdict.counts == {"equal": 1, "missing": 1, "extra": 0, "different": 1}
    assert headwater.compare(shop, "seen", [{"id": 1}, {"id": 2}]).ok


@pytest.mark.parametrize(
    "rows", [[{"id": 1, "itm": "tea"}], [{"item": "tea"}], [{"id": 1, "item": "tea"}, {"id": 2}]]
)
def test_a_comparison_leaves_no_column_out_in_silence(shop: Pipeline, rows: list[dict[str, object]]) -> None:
    with pytest.raises(UsageError):
        headwater.compare(shop, "seen", rows)


def test_a_view_that_should_be_empty_is_compared_too(shop: Pipeline) -> None:
    verdict = headwater.compare(shop, "seen", [])
    assert verdict.counts == {"equal": 0, "missing": 0, "extra": 2, "different": 0}


def test_only_views_and_streams_are_verified(shop: Pipeline) -> None:
    assert [node.name for node in verifiable(shop)] == ["seen"]
    with pytest.raises(UsageError, match='source "orders" cannot be verified'):
        headwater.verify(shop, ["orders"])


def test_a_pipeline_that_does_not_fit_together_is_not_verified(broken: Pipeline) -> None:
    with pytest.raises(PipelineError, match="oders"):
        headwater.verify(broken)


def test_tables_that_are_captured_and_sinks_that_can_be_read_back_are_compared_with_their_source(
    shop: Pipeline, tmp_path: Path
) -> None:
    shop.capture("crm", f"sqlite:{tmp_path / 'crm.db'}")
    shop.table("customers", "id BIGINT", key="id", captured="crm.customers")
    shop.sink(targets.sqlite(tmp_path / "a.db", "people", "id"))(people)
    shop.sink(targets.parquet(tmp_path / "archive"))(archived)
    assert [node.name for node in verifiable(shop)] == ["seen", "people"]
    assert [node.name for node in followers(shop)] == ["people"]
    assert followers(shop, ["customers"]) == []
    for name in ("seen", "archived", "orders"):
        with pytest.raises(UsageError, match=f'"{name}" cannot be compared with its source'):
            followers(shop, [name])


def people(customers: DataFrame) -> DataFrame:
    """Customers, row by row."""
    return customers


def archived(customers: DataFrame) -> DataFrame:
    """Customers, every change."""
    return customers
