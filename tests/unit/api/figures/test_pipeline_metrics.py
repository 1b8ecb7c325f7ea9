"""Figures for Prometheus, of all pipelines, by what was noted."""

from __future__ import annotations

from pathlib import Path

from figures_kit import note, orders_shop
from headwater.api.figures.pipeline_metrics import pipeline_metrics


def test_metrics_are_those_that_were_noted_each_family_once(tmp_path: Path) -> None:
    shops = [orders_shop(tmp_path / name) for name in ("a", "b")]
    for shop, name in zip(shops, "ab", strict=True):
        shop.name = name
    note(shops[0])
    note(shops[1], ended=True)
    text = pipeline_metrics(shops)
    assert 'headwater_node_up{pipeline="a",node="seen"} 1' in text
    assert 'headwater_node_up{pipeline="b",node="seen"} 0' in text, "it does not run"
    assert 'headwater_rows_total{pipeline="b",node="seen"} 200' in text
    assert text.count("# HELP headwater_rows_total") == 1


def test_there_are_none_of_what_has_never_run(tmp_path: Path) -> None:
    assert "node=" not in pipeline_metrics([orders_shop(tmp_path)])
