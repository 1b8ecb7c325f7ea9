"""A node that delivers, built anew: nothing that was sent is sent again, and nothing is left out."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery_kit import COLUMNS, batch, outbox, webhook
from headwater import Position
from headwater.errors import Fenced
from headwater.sinks import Batch
from headwater.sinks.delivery.declaration import OutboxPlace
from headwater.sinks.delivery.figures import delivery_status
from headwater.sinks.delivery.versions import DeliveryVersions
from headwater.sinks.sink import Sink
from soaking import examples

NOWHERE = replace(
    webhook("http://127.0.0.1:1/"), policy=replace(webhook("http://127.0.0.1:1/").policy, drain=0)
)


def versions(home: Path) -> DeliveryVersions:
    return DeliveryVersions(OutboxPlace(home, "hooks"), NOWHERE)


def upto(number: int, end: int, *rows: tuple[str, int | None]) -> Batch:
    """Return a batch that has read a topic up to an offset."""
    return replace(batch(number, *rows), positions=(Position("orders", {0: end}, "id"),))


def committed(sink: Sink, *batches: Batch) -> None:
    with sink:
        sink.begin()
        for each in batches:
            sink.commit(each)


def waiting(home: Path) -> list[tuple[str, int]]:
    with closing(sqlite3.connect(outbox(home))) as db:
        query = "SELECT body FROM deliveries WHERE state <> 'staged' ORDER BY seq"
        rows = [orjson.loads(row[0])["data"] for row in db.execute(query)]
    return [(row["k"], row["n"]) for row in rows]


def test_a_rebuild_sends_nothing_again(tmp_path: Path) -> None:
    built = versions(tmp_path)
    assert built.published() == 1
    committed(built.open(COLUMNS, 1), upto(0, 2, ("a", 1), ("b", 1)), upto(1, 3, ("a", 2)))
    before = waiting(tmp_path)
    for _ in range(2):  # the first is left unfinished
        built.prepare(2)
        committed(built.open(COLUMNS, 2), upto(0, 3, ("a", 1), ("b", 1), ("a", 2)))
    status = delivery_status(outbox(tmp_path))
    assert status is not None and status.waiting == 3
    built.publish(COLUMNS, 2)
    built.publish(COLUMNS, 2)
    assert (waiting(tmp_path), built.published()) == (before, 2)
    with pytest.raises(Fenced):
        built.open(COLUMNS, 1).begin()
    committed(built.open(COLUMNS, 2), upto(1, 4, ("a", 3)))
    assert waiting(tmp_path) == [*before, ("a", 3)]


def test_what_the_old_version_has_read_meanwhile_is_not_sent_again(tmp_path: Path) -> None:
    built = versions(tmp_path)
    with built.open(COLUMNS, 1) as old:
        old.begin()
        old.commit(upto(0, 1, ("a", 1)))
        built.prepare(2)
        committed(built.open(COLUMNS, 2), upto(0, 2, ("a", 1), ("a", 2)))
        old.commit(upto(1, 2, ("a", 2)))
        built.publish(COLUMNS, 2)
        with pytest.raises(Fenced):
            old.commit(upto(2, 3, ("a", 3)))
    assert waiting(tmp_path) == [("a", 1), ("a", 2)]


@given(st.lists(st.sampled_from("ab"), max_size=12), st.data())
@examples(20)
def test_each_row_is_sent_once_however_batches_were_cut(
    tmp_path_factory: pytest.TempPathFactory, keys: list[str], data: st.DataObject
) -> None:
    home = tmp_path_factory.mktemp("home")
    rows = [(key, number) for number, key in enumerate(keys)]
    built, reached = versions(home), data.draw(st.integers(0, len(rows)))

    def cut(end: int) -> list[Batch]:
        ends = sorted({*data.draw(st.sets(st.integers(1, max(end, 1)))), end} - {0})
        ends = [each for each in ends if each <= end]
        pairs = zip([0, *ends], ends, strict=False)
        return [upto(number, last, *rows[first:last]) for number, (first, last) in enumerate(pairs)]

    committed(built.open(COLUMNS, 1), *cut(reached))
    built.prepare(2)
    committed(built.open(COLUMNS, 2), *cut(len(rows)))
    built.publish(COLUMNS, 2)
    assert waiting(home) == rows
