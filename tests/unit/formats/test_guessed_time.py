"""Which column is the event time: by name, and by how large numbers are."""

from __future__ import annotations

import pytest

from headwater.formats.guessed_time import event_time
from headwater.formats.json_columns import GuessedColumn

SECONDS = 1_767_268_800


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ([("id", "BIGINT", [SECONDS])], None),
        ([("ts", "BIGINT", [SECONDS, None])], "timestamp_seconds(ts)"),
        ([("ts", "DOUBLE", [SECONDS + 0.5])], "timestamp_seconds(ts)"),
        ([("at", "BIGINT", [SECONDS * 1000])], "timestamp_millis(at)"),
        ([("createdAt", "BIGINT", [SECONDS * 1_000_000])], "timestamp_micros(createdAt)"),
        ([("event time", "BIGINT", [SECONDS])], None),
        ([("sent_at", "BIGINT", [5])], None),
        ([("sent_at", "BIGINT", [SECONDS, SECONDS * 1000])], None),
        ([("at", "STRING", ["noon"])], None),
        ([("day", "TIMESTAMP", [])], "day"),
        ([("updated_at", "TIMESTAMP", []), ("at", "TIMESTAMP", [])], "at"),
        ([("at", "TIMESTAMP", []), ("event_time", "BIGINT", [SECONDS])], "timestamp_seconds(event_time)"),
        ([("born", "TIMESTAMP", []), ("sent_ms", "BIGINT", [SECONDS * 1000])], "timestamp_millis(sent_ms)"),
    ],
)
def test_the_column_that_looks_most_like_it(
    columns: list[tuple[str, str, list[float]]], found: str | None
) -> None:
    assert event_time([GuessedColumn(*each) for each in columns]) == found
