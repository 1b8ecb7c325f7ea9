"""NodeResult columns in the declaration of a topic."""

from __future__ import annotations

import pytest

from headwater import topic
from headwater.errors import HeadwaterError

SCHEMA = "user STRING, at BIGINT, day STRING"


@pytest.mark.parametrize(
    "settings",
    [
        {"event_time": "timestamp_millis(at)"},
        {"event_time": "to_timestamp(day, 'dd.MM.yyyy') AS noon", "key": "user"},
        {"key": ["lower(user) AS who", "at"]},
        {"key": "concat(user, day), at"},
        {"event_time": "_timestamp", "metadata": ["_offset", "_headers AS h"]},
        {"key": "CAST(_key AS STRING)", "cleanup": "compact"},
        {"producer": "user"},
    ],
)
def test_settings_are_the_declaration_again(settings: dict[str, object]) -> None:
    declared = topic.create("events", SCHEMA, **settings)  # type: ignore[arg-type]
    assert declared.read_otherwise
    assert topic.create("events", **declared.settings()) == declared
    assert set(declared.key) <= set(declared.read_schema.names)
    assert declared.event_time is None or declared.event_time in declared.read_schema.names


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"event_time": "at"}, "timestamp_millis(at)"),
        ({"event_time": "day"}, "to_timestamp(day)"),
        ({"event_time": "at + 1"}, 'expression "at + 1" is not a TIMESTAMP'),
        ({"event_time": "att"}, 'did you mean "at"'),
        ({"event_time": "timestamp_millis(at) AS user"}, "name of another column"),
        ({"event_time": "timestamp_millis(at) AS _offset"}, "name of another column"),
        ({"metadata": ["_offset", "_offset"]}, "a column twice"),
        ({"metadata": ["_ofset"]}, 'did you mean "_offset"'),
        ({"key": "lower(user)", "cleanup": "compact"}, "nothing but its key"),
        ({"key": "at / 2"}, "cannot be a key"),
        ({"producer": "usr"}, 'did you mean "user"'),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_write(settings: dict[str, object], said: str) -> None:
    with pytest.raises(HeadwaterError) as refused:
        topic.create("events", SCHEMA, **settings)  # type: ignore[arg-type]
    assert said in str(refused.value)
