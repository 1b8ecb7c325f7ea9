"""The rows of a batch as deliveries: which key orders each, what it does to its key, and its id.

Invariant: an id is that of an outbox, a version of a node, a batch and a row in it, so that no two deliveries
have the same, not even of an outbox that was deleted and filled anew.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headwater.sinks.delivery.delivery import Composer, Kind
from headwater.sinks.key_text import key_texts
from headwater.values.fitting import Fitted, TargetSchema
from headwater.values.keyed import KeyedSchema

_KEYS_PER_QUERY = 500
"""As many keys are looked for in one statement."""


@dataclass(frozen=True)
class DeliveryDraft:
    """A delivery that is not in the outbox yet."""

    row: int
    ordering_key: str | None
    body: bytes
    digest: bytes
    """Of its key and what it says: by it a rebuild knows what was sent before."""


def ordering_keys(fitted: Fitted, shape: TargetSchema) -> Sequence[str | None]:
    """Return by what each row is ordered: its key, if rows have one."""
    if not len(fitted) or not isinstance(shape, KeyedSchema):
        return [None] * len(fitted)
    return key_texts(fitted.rows, shape)


class DraftBuilder:
    """Makes deliveries of the rows of one batch, in the transaction that adds them."""

    def __init__(self, db: sqlite3.Connection, version: int, composer: Composer):
        self._db, self._version, self._composer = db, version, composer

    def drafts(self, fitted: Fitted, keys: Sequence[str | None], made: float) -> Iterator[DeliveryDraft]:
        """Yield the deliveries, in the order of the rows; what keys there are is noted meanwhile."""
        known = self._known([key for key in keys if key is not None])
        changed = dict[str, bool]()
        payloads = self._composer.payloads(fitted)
        # A row at a time: each is a message of its own.
        for row, (payload, key, gone) in enumerate(zip(payloads, keys, fitted.deleted.tolist(), strict=True)):
            there = key is not None and changed.get(key, key in known)
            if key is not None:
                changed[key] = not gone
            if payload is None or (gone and key is not None and not there):
                continue
            kind: Kind = "delete" if gone else "update" if there else "insert"
            digest = hashlib.sha256(b"%r\0%r\0%s" % (key, gone, payload)).digest()[:16]
            yield DeliveryDraft(row, key, self._composer.body(kind, payload, made), digest)
        self._note(changed)

    def _known(self, keys: Sequence[str]) -> set[str]:
        found = set[str]()
        for at in range(0, len(keys), _KEYS_PER_QUERY):
            part = keys[at : at + _KEYS_PER_QUERY]
            marks = ",".join("?" * len(part))
            query = "SELECT key FROM known_keys WHERE version = ? AND key IN (%s)" % marks  # noqa: S608, UP031
            found.update(row[0] for row in self._db.execute(query, (self._version, *part)))
        return found

    def _note(self, changed: dict[str, bool]) -> None:
        there = [(self._version, key) for key, is_there in changed.items() if is_there]
        gone = [(self._version, key) for key, is_there in changed.items() if not is_there]
        self._db.executemany("INSERT OR IGNORE INTO known_keys VALUES (?, ?)", there)
        self._db.executemany("DELETE FROM known_keys WHERE version = ? AND key = ?", gone)


def delivery_id(outbox: str, version: int, batch: int, row: int | str) -> str:
    """Return the id of a delivery.

    >>> delivery_id("a", 1, 0, 0) == delivery_id("a", 1, 0, 0) != delivery_id("a", 1, 0, 1)
    True
    """
    named = f"{outbox}/{version}/{batch}/{row}".encode()
    return "msg_" + hashlib.sha256(named).hexdigest()[:32]
