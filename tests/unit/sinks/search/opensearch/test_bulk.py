"""Rows as requests, and answers."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from headwater.errors import DiskFull, RowError, SinkRefused, SinkUnavailable
from headwater.sinks.search.declaration import declare_search
from headwater.sinks.search.opensearch import bulk
from headwater.sinks.search.opensearch.rest import Answer
from headwater.values.keyed import settle

DECLARED = declare_search("index", "id BIGINT, name STRING", "id", ["name"])


def lines(table: pa.Table) -> list[list[Any]]:
    bodies = bulk.requests(settle(table, DECLARED), DECLARED, 77)
    return [[json.loads(line) for line in body.decode().splitlines()] for body in bodies]


def test_each_row_goes_with_its_version_and_a_deletion_has_no_row() -> None:
    table = pa.table({"id": [1, 2], "name": ['a "b"', None], "_deleted": [False, True]})
    how = {"version": 77, "version_type": "external"}
    assert lines(table) == [
        [{"index": {"_id": "1", **how}}, {"id": 1, "name": 'a "b"'}, {"delete": {"_id": "2", **how}}]
    ]
    assert lines(table.slice(0, 0)) == []


def test_requests_are_cut_between_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "REQUEST_BYTES", 500)
    bodies = lines(pa.table({"id": range(40), "name": ["x" * 50] * 40}))
    assert len(bodies) > 5
    assert [row["id"] for body in bodies for row in body[1::2]] == list(range(40))


def answer(status: int, reason: str | None = None, action: str = "index") -> Answer:
    result = {"status": status} | ({"error": {"type": reason}} if reason else {})
    return Answer(200, {"errors": True, "items": [{"index": {"status": 201}}, {action: result}]})


def test_a_row_that_is_there_in_a_newer_version_is_no_error() -> None:
    bulk.check(answer(409, "version_conflict_engine_exception"), "index")
    bulk.check(answer(404, action="delete"), "index")
    bulk.check(Answer(200, {"errors": False}), "index")


@pytest.mark.parametrize(
    ("refused", "kind"),
    [(answer(400, "mapper_parsing_exception"), RowError), (answer(429, "rejected"), SinkUnavailable),
     (answer(503, "unavailable_shards_exception"), SinkUnavailable), (answer(403, "security"), SinkRefused),
     (answer(404, "index_not_found_exception"), SinkRefused),
     (answer(403, "cluster_block_exception"), DiskFull)],
)  # fmt: skip
def test_a_row_that_is_refused_is_told_as_what_it_means(refused: Answer, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        bulk.check(refused, "index")
