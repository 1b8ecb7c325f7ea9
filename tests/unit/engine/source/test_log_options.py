"""The log that a data source's options name is opened with the settings that come with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.engine.source.log_options import opened
from headwater.errors import UsageError


def test_a_log_is_opened_by_its_url_alone(tmp_path: Path) -> None:
    with opened({"url": f"file:{tmp_path}", "topic": "orders"}) as log:
        log.create_topic("orders", "id BIGINT")
        assert [topic.name for topic in log.topics()] == ["orders"]


def test_settings_of_the_log_are_read_from_json_and_reach_it(tmp_path: Path) -> None:
    with opened({"url": f"file:{tmp_path}", "log": json.dumps({"durability": "os"})}) as log:
        assert log.topics() == []
    with pytest.raises(UsageError):
        opened({"url": f"file:{tmp_path}", "log": json.dumps({"durability": "perhaps"})})


def test_a_secret_is_refused_in_an_option_that_spark_shows() -> None:
    options = {"url": "kafka://localhost:1", "log": json.dumps({"sasl.password": "hush"})}
    with pytest.raises(UsageError, match="does not belong in an option of Spark's") as told:
        opened(options)
    assert "hush" not in str(told.value)
