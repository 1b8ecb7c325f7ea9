"""An index on a real OpenSearch node: the public suite, older changes, crashes and refusals."""

from __future__ import annotations

import json
import time
import urllib.request
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import opensearch_server
from headwater import Position
from headwater.errors import Fenced, RowError, SchemaError, SinkRefused, SinkUnavailable, UsageError
from headwater.sinks import Batch, crash
from headwater.sinks.change_version import change_version
from headwater.sinks.search.declaration import declare_search
from headwater.sinks.search.opensearch import bulk
from headwater.sinks.search.opensearch.mapping import MARKER
from headwater.sinks.search.opensearch.sink import OpenSearchSink
from headwater.testing.sink_suite import KEY, SCHEMA, Check, TargetUnderTest, checks
from headwater.values.keyed import settle
from repeated_batches import AGAIN, BATCHES, Changes, committed, rows

COLUMNS = "id BIGINT NOT NULL, name STRING"


def named(check: Check) -> str:
    return getattr(check, "__name__", "check")


@pytest.fixture
def index() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


def call(server: opensearch_server.Server, method: str, path: str, body: Any = None) -> dict[str, Any]:
    request = urllib.request.Request(f"{server.url}{path}", method=method)
    request.add_header("Content-Type", "application/json")
    if body is not None:
        request.data = json.dumps(body).encode()
    with urllib.request.urlopen(request, timeout=60) as answer:
        decoded: dict[str, Any] = json.loads(answer.read())
        return decoded


def documents(server: opensearch_server.Server, index: str) -> dict[str, dict[str, Any]]:
    """Return what a search finds now, by id, without the marker.

    A server goes on with the request of a client that was killed, and shows a part of it meanwhile.
    """
    while call(server, "GET", "/_tasks?actions=indices:data/write/bulk*")["nodes"]:
        time.sleep(0.02)
    call(server, "POST", f"/{index}/_refresh")
    hits = call(server, "GET", f"/{index}/_search?size=10000")["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits if hit["_id"] != MARKER}


def found(server: opensearch_server.Server, index: str, text: str) -> list[str]:
    """Return the ids that a search for words finds."""
    hits = call(server, "POST", f"/{index}/_search", {"query": {"match": {"name": text}}})["hits"]["hits"]
    return sorted(hit["_id"] for hit in hits)


def opened(server: opensearch_server.Server, index: str) -> OpenSearchSink:
    return OpenSearchSink(f"opensearch://127.0.0.1:{server.port}/{index}", COLUMNS, "id", ["name"])


def target(server: opensearch_server.Server, index: str) -> TargetUnderTest:
    url = f"opensearch://127.0.0.1:{server.port}/{index}"

    def save() -> Callable[[], None]:
        call(server, "POST", f"/{index}/_refresh")
        copies = call(server, "GET", f"/{index}/_search?size=10000&version=true")["hits"]["hits"]

        def restore() -> None:
            call(server, "DELETE", f"/{index}")
            for copy in copies:
                path = f"/{index}/_doc/{copy['_id']}?version={copy['_version']}&version_type=external"
                call(server, "PUT", path, copy["_source"])

        return restore

    def visible() -> list[dict[str, Any]]:
        return [{"n": None, "note": None} | row for row in documents(server, index).values()]

    def open() -> OpenSearchSink:
        return OpenSearchSink(url, SCHEMA, KEY, ["note"])

    with open() as sink:
        sink.begin()
    return TargetUnderTest(open, visible, save)


@pytest.mark.parametrize("check", checks(), ids=named)
def test_an_index_is_effectively_once(check: Check, opensearch: opensearch_server.Server, index: str) -> None:
    """Batches of one request, which a server has taken whole when it has taken it."""
    check(target(opensearch, index))


def test_rows_are_found_by_their_words_when_the_commit_returns(
    opensearch: opensearch_server.Server, index: str
) -> None:
    with opened(opensearch, index) as sink:
        sink.begin()
        sink.commit(
            Batch(0, rows((1, "Ada Lovelace"), (2, "Grace Hopper")), (Position("people", {0: 2}),), 9)
        )
        assert found(opensearch, index, "lovelace") == ["1"]
        sink.commit(Batch(1, rows((1, None), (2, "Grace Lovelace"))))
        assert found(opensearch, index, "lovelace") == ["2"]
        assert found(opensearch, index, "hopper") == []
    marker = call(opensearch, "GET", f"/{index}/_doc/{MARKER}")["_source"][MARKER]
    assert (marker["batch"], marker["epoch"], marker["clock"]) == (1, 1, None)


def test_columns_of_every_type_are_taken(opensearch: opensearch_server.Server, index: str) -> None:
    schema = ("id STRING, t STRING, a DECIMAL(38,5), b MAP<STRING, ARRAY<INT>>, c STRUCT<x: BINARY>, "
              "d VARIANT, e TIMESTAMP, f DOUBLE, g BOOLEAN, h DATE, i BINARY")  # fmt: skip
    row = {"id": "1", "t": "x" * 40_000, "d": "[1,2]", "f": float("nan"), "g": True, "i": b"\0"}
    kinds = {"id": pa.string(), "t": pa.string(), "a": pa.decimal128(38, 5),
             "b": pa.map_(pa.string(), pa.list_(pa.int32())), "c": pa.struct([("x", pa.binary())]),
             "d": pa.string(), "e": pa.timestamp("us", "UTC"), "f": pa.float64(), "g": pa.bool_(),
             "h": pa.date32(), "i": pa.binary()}  # fmt: skip
    table = pa.table({name: pa.array([row.get(name)], kind) for name, kind in kinds.items()})
    url = f"opensearch://127.0.0.1:{opensearch.port}/{index}"
    with OpenSearchSink(url, schema, "id", ["t"]) as sink:
        sink.begin()
        assert sink.commit(Batch(0, table))
    assert documents(opensearch, index)["1"]["d"] == [1, 2]


def test_an_older_change_never_takes_the_place_of_a_newer_one(
    opensearch: opensearch_server.Server, index: str
) -> None:
    """The rows of a runner that was replaced come late, past its look at the marker."""
    with opened(opensearch, index) as sink:
        sink.begin()
        sink.begin()
        sink.commit(Batch(4, rows((1, "new"), (2, "new"), (3, "new"))))
        sink.commit(Batch(5, rows((2, None))))
    declared = declare_search("index", COLUMNS, "id", ["name"])
    late = settle(rows((1, "old"), (2, "old"), (3, None), (4, "only here")), declared)
    (body,) = bulk.requests(late, declared, change_version(4, 1))
    request = urllib.request.Request(f"{opensearch.url}/{index}/_bulk", body, method="POST")
    request.add_header("Content-Type", "application/x-ndjson")
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert [next(iter(item.values()))["status"] for item in json.loads(answer.read())["items"]] == [
            409
        ] * 3 + [201]
    names = {key: row["name"] for key, row in documents(opensearch, index).items()}
    assert names == {"1": "new", "3": "new", "4": "only here"}


def test_a_large_batch_is_several_requests(
    opensearch: opensearch_server.Server, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "REQUEST_BYTES", 2_000)
    many = Batch(0, rows(*((number, f"name {number}") for number in range(500))))
    with opened(opensearch, index) as sink:
        sink.begin()
        assert sink.commit(many)
        assert not sink.commit(many)
    assert len(documents(opensearch, index)) == 500


def test_a_runner_that_is_replaced_between_its_rows_and_its_number_is_fenced(
    opensearch: opensearch_server.Server, index: str
) -> None:
    with opened(opensearch, index) as first, opened(opensearch, index) as second:
        first.begin()
        crash.watch(lambda name: second.begin() if name == "opensearch: rows visible" else None)
        try:
            with pytest.raises(Fenced, match="taken over"):
                first.commit(Batch(0, rows((1, "first"))))
        finally:
            crash.watch(None)
        assert second.commit(Batch(0, rows((1, "second"))))
    assert documents(opensearch, index)["1"]["name"] == "second"


def test_an_index_that_was_deleted_is_noticed_by_the_next_commit_and_the_next_start(
    opensearch: opensearch_server.Server, index: str
) -> None:
    with opened(opensearch, index) as sink:
        sink.begin()
        sink.commit(Batch(0, rows((1, "a"))))
        receipt = sink.receipt()
        call(opensearch, "DELETE", f"/{index}")
        with pytest.raises(SinkRefused, match="lost batches"):
            sink.commit(Batch(1, rows((2, "b"))))
    with opened(opensearch, index) as sink:
        assert sink.begin() == -1
        assert sink.resume(receipt)


def test_an_index_that_was_emptied_or_is_not_ours_is_refused(
    opensearch: opensearch_server.Server, index: str
) -> None:
    with opened(opensearch, index) as sink:
        sink.begin()
        sink.commit(Batch(0, rows((1, "a"))))
        call(opensearch, "DELETE", f"/{index}/_doc/1")
        with pytest.raises(SinkRefused, match="is empty"):
            sink.begin()
        call(opensearch, "DELETE", f"/{index}/_doc/{MARKER}")
        call(opensearch, "PUT", f"/{index}/_doc/7", {"id": 7})
        with pytest.raises(SinkRefused, match="holds documents"):
            sink.begin()


def test_a_server_that_is_killed_has_what_was_committed(
    opensearch: opensearch_server.Server, index: str
) -> None:
    with opened(opensearch, index) as sink:
        sink.begin()
        sink.commit(Batch(0, rows((1, "a"), (2, "b"))))
        opensearch.kill()
        with pytest.raises(SinkUnavailable, match="cannot be reached"):
            sink.commit(Batch(1, rows((2, "c"))))
        opensearch.start()
        assert sink.commit(Batch(1, rows((2, "c"))))
    names = {key: row["name"] for key, row in documents(opensearch, index).items()}
    assert names == {"1": "a", "2": "c"}


def test_keys_that_no_document_can_have_are_refused(opensearch: opensearch_server.Server, index: str) -> None:
    url = f"opensearch://127.0.0.1:{opensearch.port}/{index}"
    with OpenSearchSink(url, "id STRING", "id", ["id"]) as sink:
        sink.begin()
        for key in ("", "x" * 513, MARKER):
            with pytest.raises(RowError):
                sink.commit(Batch(0, pa.table({"id": [key]})))
        assert sink.commit(Batch(0, pa.table({"id": ['a/b?c#d é"\n']})))
    assert list(documents(opensearch, index)) == ['a/b?c#d é"\n']


def test_another_key_and_a_mapping_that_does_not_fit_are_refused(
    opensearch: opensearch_server.Server, index: str
) -> None:
    with opened(opensearch, index) as sink, pytest.raises(UsageError, match="not begun"):
        sink.commit(Batch(0, rows()))
    call(opensearch, "PUT", f"/{index}", {"mappings": {"properties": {"name": {"type": "date"}}}})
    with opened(opensearch, index) as sink:
        sink.begin()
        with pytest.raises(RowError, match="does not fit"):
            sink.commit(Batch(0, rows((1, "no date"))))
    url = f"opensearch://127.0.0.1:{opensearch.port}/{index}"
    with (
        OpenSearchSink(url, COLUMNS, "name", ["name"]) as sink,
        pytest.raises(SchemaError, match="another key"),
    ):
        sink.begin()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=8)
@given(batches=BATCHES, again=AGAIN)
def test_batches_that_are_repeated_come_to_a_dictionary(
    batches: list[Changes], again: list[int], opensearch: opensearch_server.Server
) -> None:
    index = f"h-{uuid.uuid4().hex[:12]}"
    with opened(opensearch, index) as sink:
        expected = committed(sink, batches, again)
    assert {int(key): row["name"] for key, row in documents(opensearch, index).items()} == expected
    call(opensearch, "DELETE", f"/{index}")
