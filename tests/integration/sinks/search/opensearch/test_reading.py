"""All documents of an index read back, as they were at one moment."""

from __future__ import annotations

import uuid

import pyarrow as pa

import opensearch_server
from headwater.sinks import Batch
from headwater.sinks.search.opensearch.sink import OpenSearchSink


def opened(server: opensearch_server.Server, index: str) -> OpenSearchSink:
    url = f"opensearch://127.0.0.1:{server.port}/{index}"
    return OpenSearchSink(url, "id BIGINT, name STRING", "id", "name")


def test_more_documents_than_one_answer_has_are_of_one_moment(opensearch: opensearch_server.Server) -> None:
    index, ids = f"r-{uuid.uuid4().hex[:8]}", range(5_000)
    with opened(opensearch, index) as sink, opened(opensearch, index) as reader:
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": ids, "name": ["old"] * len(ids)})))
        contents = reader.read_back()
        first = next(contents.rows)
        sink.commit(Batch(1, pa.table({"id": ids, "name": ["new"] * len(ids)})))
        rows = [row for batch in (first, *contents.rows) for row in batch.to_pylist()]
        assert not contents.settled(), "which is not known to have been before the commit"
    assert sorted(row["id"] for row in rows) == list(ids)
    assert {row["name"] for row in rows} == {"old"}


def test_an_index_that_is_not_there_holds_nothing(opensearch: opensearch_server.Server) -> None:
    with opened(opensearch, f"r-{uuid.uuid4().hex[:8]}") as reader:
        contents = reader.read_back()
        assert (contents.batch, list(contents.rows)) == (-1, [])
