"""The views of pipelines, found by pipeline, by directory, by file and beside a log."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater
from headwater import Pipeline
from headwater.api.views import has_views, homes_below, homes_beside
from headwater.errors import HeadwaterError


def test_views_are_opened_by_pipeline_directory_and_file(shop: Pipeline) -> None:
    for place in (shop, shop.home, str(shop.home / "views.db")):
        with headwater.open_views(place) as views:
            assert views["seen"].count() == 2


def test_homes_are_found_beside_their_log_and_below_it(shop: Pipeline, tmp_path: Path) -> None:
    assert homes_beside(shop.log) == {"shop": shop.home}
    assert homes_below(tmp_path / "data") == homes_below(shop.home.parent) == [shop.home]
    assert has_views(shop.home)
    assert not has_views(tmp_path)


def test_the_home_of_a_pipeline_on_kafka_is_found_by_its_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = Path("headwater-shop")
    home.mkdir()
    assert homes_beside("kafka://localhost:9092") == {}
    (home / "views.db").touch()
    assert homes_beside("kafka://localhost:9092") == {"shop": home}


def test_a_directory_without_views_has_none_to_open(tmp_path: Path) -> None:
    with pytest.raises(HeadwaterError):
        headwater.open_views(tmp_path)
    assert list(tmp_path.iterdir()) == []
