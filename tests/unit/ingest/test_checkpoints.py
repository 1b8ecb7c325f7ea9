"""Notes of ways in, in the log."""

from __future__ import annotations

import pytest

import headwater
from headwater.errors import DamagedLog, Fenced, UsageError
from headwater.ingest.checkpoints import (
    IngestCheckpoint,
    IngestCheckpoints,
    checkpoint_status,
    load_checkpoint,
)


def test_the_newest_note_counts_and_any_reader_finds_it() -> None:
    with headwater.open("memory:") as log:
        assert load_checkpoint(log, "m") is None
        with IngestCheckpoints(log, "m") as notes:
            notes.save(IngestCheckpoint("tcp://x", "running", {"rows": 1}))
            notes.save(IngestCheckpoint("tcp://x", "ended", {"rows": 2}, {"line": 7}))
        note = load_checkpoint(log, "m")
        assert note is not None
        assert (note.counts, note.progress) == ({"rows": 2}, {"line": 7})
        assert checkpoint_status(log, "m").state == "ended"


def test_who_opens_the_notes_fences_whoever_wrote_them_before() -> None:
    with headwater.open("memory:") as log:
        first = IngestCheckpoints(log, "m")
        with IngestCheckpoints(log, "m"), pytest.raises(Fenced):
            first.save(IngestCheckpoint("tcp://x", "running"))


def test_a_name_that_nobody_has_is_told() -> None:
    with headwater.open("memory:") as log, pytest.raises(UsageError, match='no way in named "m"'):
        checkpoint_status(log, "m")


def test_notes_of_another_kind_are_refused() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("m.ingest", "name STRING, note STRING", key="name", cleanup="compact")
        with log.producer("m.ingest") as producer:
            producer.send({"name": "m", "note": '{"odd": 1}'})
        with pytest.raises(DamagedLog):
            load_checkpoint(log, "m")
