"""The generator's process: heard while it writes, ended with its block."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater.cli.demo.feed import EventFeed
from headwater.errors import HeadwaterError


def program(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "program.py"
    file.write_text(text)
    return file


def test_a_generator_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    failing = program(tmp_path, "import sys; print(7, flush=True); sys.exit('no more ideas')")
    with (
        EventFeed(failing, "file:x", Path("crm.db"), None) as feed,
        pytest.raises(HeadwaterError, match="generator of events has failed") as told,
    ):
        while not feed.ended(1):
            pass
    assert told.value.detail == "no more ideas"
    assert feed.written == 7


def test_a_generator_ends_with_its_block(tmp_path: Path) -> None:
    endless = program(tmp_path, "import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    with EventFeed(endless, "file:x", Path("crm.db"), None) as feed:
        while not feed.written:
            assert not feed.ended(0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(feed.written, 0)


def test_a_generator_of_so_many_events_ends_by_itself(tmp_path: Path) -> None:
    counting = program(tmp_path, "import sys; print(sys.argv[-1])")
    with EventFeed(counting, "file:x", Path("crm.db"), 12) as feed:
        while not feed.ended(1):
            pass
    assert feed.written == 12


def test_a_generator_that_fails_without_a_word_is_told_by_its_exit_code(tmp_path: Path) -> None:
    failing = program(tmp_path, "import sys; sys.exit(3)")
    with EventFeed(failing, "file:x", Path("crm.db"), None) as feed, pytest.raises(HeadwaterError) as told:
        while not feed.ended(1):
            pass
    assert told.value.detail == "exit code 3"
