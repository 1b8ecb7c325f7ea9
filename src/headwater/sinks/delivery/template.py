"""Text with places for columns: ``"{name} owes {amount}"``.

Invariant: a place is the name of a column and nothing else, so that no value and no attribute of Python is
reached by it; a line has no control character in it, whatever a value holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.errors import UsageError, nearest

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_LONGEST_LINE = 200


@dataclass(frozen=True)
class TextTemplate:
    """A text with places for the columns of a row.

    >>> TextTemplate("{name} owes {{{amount}}}").render({"name": "Ada", "amount": 3})
    'Ada owes {3}'
    """

    text: str

    def check(self, what: str, columns: list[str]) -> None:
        """Refuse places that are no columns, and braces without their other half."""
        for part in _PART.finditer(self.text):
            if part[0] in ("{{", "}}"):
                continue
            if part[1] is None:
                raise UsageError(f'text of {what} has a single "{part[0]}"', hint=f'write "{part[0] * 2}"')
            if part[1] not in columns:
                hint = nearest(part[1], columns) or "its columns: " + ", ".join(columns)
                raise UsageError(f'{what} has no column "{part[1]}" for its text', hint=hint)

    def render(self, row: Mapping[str, Any]) -> str:
        """Return the text of a row; what is null is left out."""

        def value(part: re.Match[str]) -> str:
            if part[1] is None:
                return part[0][0]
            return "" if row[part[1]] is None else str(row[part[1]])

        return _PART.sub(value, self.text)

    def render_line(self, row: Mapping[str, Any]) -> str:
        """Return the text as one line, cut where it is too long for a heading."""
        return one_line(self.render(row))


def one_line(text: str, longest: int = _LONGEST_LINE) -> str:
    r"""Return a text without line breaks and other control characters.

    >>> one_line("a\r\nBcc: everybody@example.com")
    'a Bcc: everybody@example.com'
    """
    line = _CONTROL.sub(" ", text).strip()
    return line if len(line) <= longest else line[: longest - 1] + "…"
