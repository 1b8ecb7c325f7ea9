"""Views as they are listed."""

from __future__ import annotations

from pathlib import Path

from headwater.serve.http.served import Served
from headwater.serve.views import view_listing
from serve_kit import make_log, make_views


def test_a_view_is_told_with_its_columns_and_one_that_is_not_published_is_not(tmp_path: Path) -> None:
    with make_log(tmp_path) as log, make_views(tmp_path) as store:
        (view,) = view_listing.views(Served(log, {}, {"shop": store}))
        assert (view["rows"], view["counted"], view["sequence"]) == (10, 10, 10)
    assert (view["batch"], view["clock"], view["version"]) == (0, None, 1)
    assert [column["name"] for column in view["columns"] if column["numeric"]] == ["count", "price", "rate"]
