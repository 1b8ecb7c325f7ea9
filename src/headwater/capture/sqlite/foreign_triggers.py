"""The application's own triggers that a capture cannot work beside.

SQLite does not say in which order the triggers of a table run. Nearly always that does not matter
(``triggers.py``); where it does, the table is refused rather than captured with holes.
"""

from __future__ import annotations

import re

from headwater.capture.sqlite.catalog import SqliteTable
from headwater.capture.sqlite.connection import SqliteConnection
from headwater.capture.sqlite.object_names import PREFIX
from headwater.errors import SourceRefused

_BEGIN = re.compile(r"\b(BEGIN)\b", re.IGNORECASE)
_AFTER = re.compile(r"\bAFTER\s+(?:INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
_IGNORES = re.compile(r"\bRAISE\s*\(\s*IGNORE\s*\)", re.IGNORECASE)
_WRITES = re.compile(r"\b(?:INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE)


def check(db: SqliteConnection, shape: SqliteTable) -> None:
    """Refuse a table with triggers by which changes of it could be missed."""
    made = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE"
    for name, sql in db.rows(made, shape.table.name):
        reason = None if name.startswith(PREFIX) else _danger(sql, shape)
        if reason:
            raise SourceRefused(
                f'table "{shape.table.name}" of {db.title} cannot be captured beside trigger "{name}"',
                detail=reason,
                hint="rewrite the trigger, or leave the table out",
            )


def _danger(sql: str, shape: SqliteTable) -> str | None:
    """Return how changes could be missed because of a trigger."""
    head, _, body = _BEGIN.split(sql, 1)
    before = not _AFTER.search(head)  # which is what a trigger is that does not say
    if not before and _IGNORES.search(body):
        return (
            "RAISE(IGNORE) in it leaves out triggers that have not run yet, when the row is written already"
        )
    if before and shape.constrained and _WRITES.search(body):
        return "it writes while it is being looked for rows that a statement replaces"
    return None
