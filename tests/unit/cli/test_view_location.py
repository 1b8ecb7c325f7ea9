"""Where the views are that a command reads."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater
from headwater.cli.view_location import find
from headwater.errors import HeadwaterError, UsageError


@pytest.fixture
def data(url: str, tmp_path: Path) -> Path:
    """A log without pipelines."""
    with headwater.open(url) as log:
        log.create_topic("orders", "id BIGINT")
    return tmp_path / "data"


def pipeline(data: Path, name: str) -> Path:
    home = data / "pipelines" / name
    home.mkdir(parents=True)
    (home / "views.db").touch()
    return home


def test_the_only_pipeline_beside_the_log_is_meant(url: str, data: Path) -> None:
    with pytest.raises(HeadwaterError, match="no views beside the log"):
        find(None, None, url)
    home = pipeline(data, "shop")
    assert find(None, None, url) == find(None, "shop", url) == home


def test_of_several_pipelines_one_is_named(url: str, data: Path) -> None:
    pipeline(data, "shop")
    home = pipeline(data, "audit")
    with pytest.raises(UsageError, match="has 2 pipelines: audit, shop"):
        find(None, None, url)
    assert find(None, "audit", url) == home
    with pytest.raises(UsageError) as refused:
        find(None, "adit", url)
    assert refused.value.hint == 'did you mean "audit"?'


def test_a_home_is_taken_as_it_is_named(url: str, data: Path) -> None:
    home = pipeline(data, "shop")
    assert find(home, None, "file:./elsewhere") == home
    with pytest.raises(UsageError, match="is the home of one pipeline"):
        find(home, "shop", url)


def test_a_home_that_is_too_high_is_answered_with_the_right_one(data: Path) -> None:
    home = pipeline(data, "shop")
    for above in (data, home.parent):
        with pytest.raises(UsageError, match="no views in") as refused:
            find(above, None, "file:./elsewhere")
        assert refused.value.hint == f'did you mean "{home}"?'


def test_a_log_that_is_not_there_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(HeadwaterError, match="no log at"):
        find(None, None, f"file:{tmp_path}/nowhere")
