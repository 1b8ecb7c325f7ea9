"""Lines as rows."""

from __future__ import annotations

import pytest

import headwater
from headwater.errors import UsageError
from headwater.ingest.lines.decoding import decode_texts, json_decoder, text_decoder


def test_json_fills_columns_and_a_column_that_is_not_there_is_refused() -> None:
    with headwater.open("memory:") as log:
        decode = json_decoder(log.create_topic("t", "id BIGINT, name STRING"))
    batch, bad = decode([b'{"id": 1}', b'{"id": 2, "odd": 1}', b"{", b'{"name": "x"}'])
    assert batch.to_pylist() == [{"id": 1, "name": None}, {"id": None, "name": "x"}]
    assert [number for number, _ in bad] == [1, 2]


def test_text_goes_into_one_column() -> None:
    with headwater.open("memory:") as log:
        topic = log.create_topic("t", "id BIGINT, line STRING")
    batch, bad = text_decoder(topic, "line")([b"one", b"\xff", b"zw\xc3\xb6lf"])
    assert batch.column("line").to_pylist() == ["one", "zwölf"]
    assert [number for number, _ in bad] == [1]
    with pytest.raises(UsageError, match='no STRING column "id"'):
        text_decoder(topic, "id")


def test_no_line_is_no_row() -> None:
    assert len(decode_texts([])[0]) == 0
