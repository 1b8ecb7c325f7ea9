from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.sourcing.settings import checked_settings


def test_settings_have_defaults() -> None:
    made = checked_settings("account", {})
    assert (made.snapshot_every, made.partitions, made.timers) == (100, 1, ())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"snapshots": 5}, 'no setting "snapshots"'),
        ({"snapshot_every": 0}, "snapshot_every"),
        ({"boundary": lambda key, command: [["x"]]}, "boundary"),
        ({"boundary": lambda k, c: [["x"]], "tags": lambda e: ["x"], "partitions": 2}, "one partition"),
    ],
    ids=["unknown", "number", "tags", "partitions"],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        checked_settings("account", given)
