"""What a webhook says of a row."""

from __future__ import annotations

from decimal import Decimal

import orjson
import pyarrow as pa

from headwater.sinks.webhook.body import WebhookBody
from headwater.values.fitting import fit, shaped
from headwater.values.keyed import declare


def test_values_are_written_as_the_log_writes_them() -> None:
    shape = declare("webhook", "id BIGINT, price DECIMAL(10,2), tags ARRAY<STRING>, none STRING", "id")
    table = pa.table(
        {"id": [2**62, 1], "price": [Decimal("1.50"), None], "tags": [["é", '"'], None], "none": [None, None],
         "_deleted": [False, True]}
    )  # fmt: skip
    body = WebhookBody(shape)
    full, gone = body.payloads(fit(table.cast(_types(table)), shape))
    assert full == b'{"id":4611686018427387904,"price":"1.50","tags":["\xc3\xa9","\\""]}'
    assert gone == b'{"id":1}'
    told = orjson.loads(body.body("delete", b'{"id":1}', 0.5))
    assert told == {"type": "delete", "timestamp": "1970-01-01T00:00:00.500000Z", "data": {"id": 1}}


def _types(table: pa.Table) -> pa.Schema:
    return pa.schema(
        [("id", pa.int64()), ("price", pa.decimal128(10, 2)), ("tags", pa.list_(pa.string())),
         ("none", pa.string()), ("_deleted", pa.bool_())]
    )  # fmt: skip


def test_a_batch_without_rows_says_nothing() -> None:
    shape = shaped("webhook", "n BIGINT")
    assert WebhookBody(shape).payloads(fit(pa.table({"n": pa.array([], pa.int64())}), shape)) == []
