"""What a statement in the binlog means to a capture: rows are events of their own, statements are all else.

Invariant: a statement that may have changed rows without telling them is never taken for one that has not;
what is not known here is one that changes no rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

_COMMENT: Final = re.compile(r"\s+|/\*(?!!).*?\*/|--[ \t][^\n]*\n?|#[^\n]*\n?", re.DOTALL)
_NAME: Final = r"(?:`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|[\w$]+)"
_TABLE: Final = rf"{_NAME}(?:\s*\.\s*{_NAME})?"
_LIST: Final = rf"{_TABLE}(?:\s*,\s*{_TABLE})*"
_FIRST: Final = re.compile(r"[a-z]+(?:\s+to\b)?", re.IGNORECASE)
_EMPTIED: Final = tuple(
    re.compile(rf"{start}\s+(?P<tables>{_LIST})", re.IGNORECASE)
    for start in (
        r"truncate(?:\s+table)?",
        r"drop\s+table(?:\s+if\s+exists)?",
        r"create\s+or\s+replace\s+table",
    )
)
_DROPPED: Final = re.compile(rf"drop\s+(?:database|schema)(?:\s+if\s+exists)?\s+({_NAME})", re.IGNORECASE)
_PARTS: Final = re.compile(
    rf"alter\s+(?:online\s+)?(?:ignore\s+)?table\s+(?:if\s+exists\s+)?(?P<tables>{_TABLE})"
    r".*\b(?:drop|truncate|exchange|convert)\s+(?:partition|table)\b",
    re.IGNORECASE | re.DOTALL,
)


class Meaning(Enum):
    """What kind of statement it is."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    """The end of a transaction: what stands before it in the binlog has not happened."""
    UNDONE = "undone"
    """The same of a part of a transaction, back to a savepoint."""
    PREPARED = "prepared"
    """A part of a distributed transaction."""
    EMPTIED = "emptied"
    """All rows of tables are gone."""
    PARTITION = "partition"
    """Rows of a table have come or gone with a partition."""
    SCHEMA = "schema"
    ROWS = "rows"
    """Rows were changed, and only the statement is known."""
    OTHER = "other"


_KINDS: Final = {
    "begin": Meaning.BEGIN,
    "commit": Meaning.COMMIT,
    "rollback": Meaning.ROLLBACK,
    "rollback to": Meaning.UNDONE,
    "xa": Meaning.PREPARED,
    **dict.fromkeys(("create", "alter", "drop", "rename", "truncate"), Meaning.SCHEMA),
    **dict.fromkeys(("insert", "update", "delete", "replace", "load", "with"), Meaning.ROWS),
}


@dataclass(frozen=True)
class BinlogStatement:
    """A statement, and the tables that it names where that matters."""

    meaning: Meaning
    tables: tuple[tuple[str | None, str | None], ...] = ()
    """Schema and name; without a schema the current one, without a name every table of it."""


def understand(text: str) -> BinlogStatement:
    """Return what a statement means."""
    plain = _without_comments(text)
    for pattern in _EMPTIED:
        if found := pattern.match(plain):
            return BinlogStatement(Meaning.EMPTIED, tuple(_tables(found["tables"])))
    if found := _DROPPED.match(plain):
        return BinlogStatement(Meaning.EMPTIED, ((_unquoted(found[1]), None),))
    if found := _PARTS.match(plain):
        return BinlogStatement(Meaning.PARTITION, tuple(_tables(found["tables"])))
    first = _FIRST.match(plain)
    word = " ".join(first[0].lower().split()) if first else ""
    return BinlogStatement(_KINDS.get(word, _KINDS.get(word.partition(" ")[0], Meaning.OTHER)))


def _without_comments(text: str) -> str:
    """Return a statement from its first word on."""
    at = 0
    while found := _COMMENT.match(text, at):
        at = found.end()
    return text[at:]


def _tables(text: str) -> Iterator[tuple[str | None, str]]:
    for table in re.findall(_TABLE, text):
        names = [_unquoted(each) for each in re.findall(_NAME, table)]
        yield (names[0] if len(names) == 2 else None), names[-1]


def _unquoted(name: str) -> str:
    return name[1:-1].replace(name[0] * 2, name[0]) if name[0] in '`"' else name
