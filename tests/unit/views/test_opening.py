"""Which store a text means."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import UsageError
from headwater.views import ViewStore
from headwater.views.opening import check_store, open_store, open_views


def test_a_path_is_a_file_of_views(tmp_path: Path) -> None:
    ViewStore(tmp_path / "views.db").close()
    for place in (tmp_path / "views.db", str(tmp_path / "views.db")):
        with open_views(place) as views:
            assert views.names() == []


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_database_is_not_connected_to_before_it_is_used(scheme: str) -> None:
    open_store(f"{scheme}://shop@nowhere.invalid/shop").close()
    open_views(f"{scheme}://shop@nowhere.invalid/shop").close()


@pytest.mark.parametrize("url", ["mysql://ada:hush@db/shop", "postgresql:/ada:hush@db", "hush.db", 7, None])
def test_what_is_no_store_is_refused_without_telling_its_password(url: object) -> None:
    with pytest.raises(UsageError, match="a view store") as refused:
        check_store(url)
    assert "hush" not in str(refused.value)


def test_a_url_of_another_database_is_not_taken_for_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match='a view store cannot be "mysql:"'):
        open_views("mysql://db/shop")
    assert list(tmp_path.iterdir()) == []
