"""The bodies of many requests as rows, all at once; one by one only where some do not fit.

Invariant: a request's rows all have the types of its topic's columns, or it has the error of the first that
has not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import pyarrow as pa

from headwater.errors import HeadwaterError, RowError
from headwater.record import DELETED
from headwater.serve.topics.submission import Submission
from headwater.topic import Topic
from headwater.values import jsonl, tombstones

Decoded = dict[Submission, pa.Table | HeadwaterError]


def decode(submissions: Sequence[Submission], topic: Topic) -> Decoded:
    """Return the rows of each request, or why it is refused."""
    decoded: Decoded = {}
    plain: list[tuple[Submission, list[bytes]]] = []
    for each in submissions:
        try:
            if each.body.media_type == "application/vnd.apache.arrow.stream":
                decoded[each] = checked(each.timed(each.body.table()), topic)
                continue
            values = each.body.values()
        except HeadwaterError as error:
            decoded[each] = error
            continue
        if any(b"\n" in value for value in values):  # would take all others the long way too
            decoded |= _together([(each, values)], topic)
        else:
            plain.append((each, values))
    return decoded | _together(plain, topic)


def _together(requests: Sequence[tuple[Submission, list[bytes]]], topic: Topic) -> Decoded:
    """Decode the JSON of all requests in one go."""
    values = [value for _, each in requests for value in each]
    if not values:
        return {each: topic.schema.empty_table() for each, _ in requests}
    lines = replace(topic, schemas=(_sent_schema(topic),))  # with `_deleted`, if it is compacted
    batch, bad = jsonl.decode(values, lines, strict=True)
    table, wrong, decoded = pa.Table.from_batches([batch]), dict(bad), Decoded()
    at = 0
    stops = accumulate(len(each) for _, each in requests)
    for (each, own), stop in zip(requests, stops, strict=True):
        refused = [row for row in range(stop - len(own), stop) if row in wrong] if wrong else []
        rows = len(own) - len(refused)
        if refused:
            decoded[each] = _numbered(wrong[refused[0]], refused[0] - (stop - len(own)))
        else:
            decoded[each] = each.timed(table.slice(at, rows))
        at += rows
    return decoded


def _sent_schema(topic: Topic) -> pa.Schema:
    if not topic.compacted:
        return topic.schema
    return pa.schema([field.with_nullable(True) for field in topic.schema] + [pa.field(DELETED, pa.bool_())])


def checked(table: pa.Table, topic: Topic) -> pa.Table:
    """Return rows as the log would take them, with their metadata; raise why it would not."""
    made = [batch for batch in tombstones.from_changes(table, topic) if len(batch[0])]
    if not made:
        return topic.schema.empty_table()
    tables = []
    for batch, extras in made:
        columns = [*batch.columns, *extras.values()]
        tables.append(pa.table(dict(zip([*batch.schema.names, *extras], columns, strict=True))))
    return pa.concat_tables(tables)


def _numbered(error: RowError, row: int) -> RowError:
    return type(error)(error.message, detail=error.reason, hint=error.hint, row=row, column=error.column)
