"""Views of pipelines that run for the first time later."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import Pipeline
from headwater.serve.http import view_stores
from headwater.serve.http.view_stores import ViewStores
from serve_kit import make_views


def test_a_pipeline_appears_with_its_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_stores, "LOOK_SECONDS", 0.0)
    stores = ViewStores({}, f"file:{tmp_path / 'data'}")
    assert list(stores) == [] and "shop" not in stores
    with make_views(tmp_path):
        assert list(stores) == ["shop"] and len(stores) == 1
        assert stores["shop"] is stores["shop"] and stores["shop"].names() == ["stock"]


def test_a_pipeline_that_is_given_is_opened_when_it_has_views(tmp_path: Path) -> None:
    pipeline = Pipeline("shop", log=f"file:{tmp_path / 'data'}")
    stores = ViewStores({"shop": pipeline})
    assert "shop" not in stores
    with make_views(tmp_path):
        assert stores.opened() is None
        assert stores["shop"]["stock"].count() == 10
        assert stores.opened() == {"shop": stores["shop"]}
