"""An outbox against the public suite of sinks: effectively once, whatever is sent later."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from delivery_kit import webhook
from headwater import schema as schemas
from headwater.sinks.delivery.declaration import OutboxPlace
from headwater.sinks.delivery.sink import DeliverySink
from headwater.testing.sink_suite import KEY, SCHEMA, Check, TargetUnderTest, checks
from sink_kit import named, saved


def target(home: Path, keyed: bool) -> TargetUnderTest:
    """An outbox, and what a receiver would make of all that waits there."""
    place = OutboxPlace(home, "hooks")
    declared = webhook("http://127.0.0.1:1/", KEY if keyed else ())

    def visible() -> list[dict[str, Any]]:
        with closing(sqlite3.connect(place.file)) as db:
            bodies = [orjson.loads(row[0]) for row in db.execute("SELECT body FROM deliveries ORDER BY seq")]
        rows = [{"n": None, "note": None, **body["data"], "type": body["type"]} for body in bodies]
        newest = {row["k"]: row for row in rows}
        return [row for row in newest.values() if row["type"] != "delete"] if keyed else rows

    def opened() -> DeliverySink:
        return DeliverySink(place, schemas.parse(SCHEMA), declared, sends=False)

    with opened() as sink:
        sink.begin()
    return TargetUnderTest(opened, visible, partial(saved, place.file.parent), keyed=keyed)


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [False, True], ids=["every row", "by key"])
@pytest.mark.parametrize("check", checks(), ids=named)
def test_an_outbox_is_effectively_once(check: Check, keyed: bool, tmp_path: Path) -> None:
    check(target(tmp_path, keyed))
