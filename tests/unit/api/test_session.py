"""What comes before Spark: topics that are there and fit, and words for its failures."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater
from headwater import Pipeline
from headwater.api import session
from headwater.errors import HeadwaterError


def test_topics_of_sources_and_tables_are_made_once(tmp_path: Path) -> None:
    shop = Pipeline("shop", log=f"file:{tmp_path}/data")
    shop.source("orders", "id BIGINT")
    shop.table("customers", "id BIGINT", key="id")
    session.create_topics(shop)
    session.create_topics(shop)
    with headwater.open(shop.log) as log:
        assert sorted(topic.name for topic in log.topics()) == ["customers", "orders"]
        assert log.topic("customers").key == ("id",)


def test_a_topic_that_does_not_fit_its_source_is_told_before_spark_starts(tmp_path: Path) -> None:
    shop = Pipeline("shop", log=f"file:{tmp_path}/data")
    shop.source("orders", "id BIGINT, item STRING")
    with headwater.open(shop.log) as log:
        log.create_topic("orders", "id STRING")
    with pytest.raises(HeadwaterError, match="orders"):
        session.create_topics(shop)


def test_spark_prints_beside_the_state_of_the_pipeline(shop: Pipeline) -> None:
    assert session.log_of(shop) == shop.home / "spark.log"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("at x\njava.net.BindException: Address in use\nat y", "Address in use"),
        ("nothing of the kind", None),
    ],
)
def test_the_cause_is_what_javas_first_error_says(text: str, cause: str | None) -> None:
    assert session._cause(text) == cause


def test_only_what_was_printed_since_counts_unless_the_file_was_emptied(tmp_path: Path) -> None:
    path = tmp_path / "spark.log"
    assert session._printed(path, session._size(path)) == ""
    path.write_text("old\n")
    before = session._size(path)
    path.write_text("old\nnew\n")
    assert session._printed(path, before) == "new\n"
    path.write_text("n")
    assert session._printed(path, before) == "n"
