"""What a log and a pipeline keep is for the eyes of its owner."""

from __future__ import annotations

import os
from pathlib import Path

import headwater
from headwater import Pipeline
from headwater.engine.home.view_locations import store_of
from headwater.engine.spark.spark_log import printing_to


def can_others_enter(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o077)


def test_a_log_and_a_home_that_are_made_are_their_owners_alone(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'data'}"
    with headwater.open(url) as log:
        log.create_topic("orders", "id BIGINT")
    store_of(Pipeline("shop", log=url)).close()
    with printing_to(tmp_path / "elsewhere" / "home" / "spark.log"):
        os.write(1, b"a row that nobody should see\n")
    made = [tmp_path / "data", tmp_path / "data" / "topics", tmp_path / "data" / "pipelines" / "shop",
            tmp_path / "elsewhere" / "home"]  # fmt: skip
    assert not any(map(can_others_enter, made))


def test_a_directory_that_was_there_keeps_its_rights_but_not_for_topics(tmp_path: Path) -> None:
    root = tmp_path / "shared"
    root.mkdir(mode=0o755)
    os.chmod(root, 0o755)
    with headwater.open(f"file:{root}") as log:
        log.create_topic("orders", "id BIGINT")
    assert root.stat().st_mode & 0o777 == 0o755
    assert not can_others_enter(root / "topics")
