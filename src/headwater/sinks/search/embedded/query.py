"""What a person types into a search box, as FTS5 takes it.

=====================  ============================================
``ada lovelace``       both words
``"ada lovelace"``     one after the other
``ada OR grace``       either side
``love*``              words that begin so
``-king``              not this word
``name:ada``           in this column, if it is one that is searched
=====================  ============================================

Any other punctuation parts words. Invariant: nothing that is typed reaches FTS5 but as a quoted text, so its
own grammar cannot be met.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.errors import UsageError

_TERM = re.compile(
    r'(?P<minus>-)?(?:(?P<column>[^\s":]+):)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))(?P<star>\*)?'
)
_MOST = 64
"""Terms of a query: FTS5 has a limit of its own, and a page of text is no query."""


@dataclass
class _Alternative:
    """What has to be there, and what must not."""

    wanted: list[str] = field(default_factory=list)
    unwanted: list[str] = field(default_factory=list)

    def expression(self) -> str:
        wanted = f"({' AND '.join(self.wanted)})"
        return f"({wanted} NOT ({' OR '.join(self.unwanted)}))" if self.unwanted else wanted


def expression(text: str, columns: Mapping[str, str]) -> str:
    """Return a query for FTS5; ``columns`` are those that are searched, with their names in the index.

    >>> expression('love* -king "ada l" OR name:grace', {"name": "c1"})
    '(("love" * AND "ada l") NOT ("king")) OR (c1 : "grace")'
    """
    _check(text)
    alternatives = [_Alternative()]
    for match in _TERM.finditer(text.replace("\0", " ")):
        if match[0] == "OR":
            alternatives.append(_Alternative())
        else:
            _add(alternatives[-1], match, columns)
    return _joined(alternatives)


def _check(text: str) -> None:
    if text.count('"') % 2:
        raise UsageError(
            "query has a quote that is not closed", hint='write "two words", or leave the quote out'
        )
    if not text.isprintable() and any("\ud800" <= char <= "\udfff" for char in text):
        raise UsageError("query is not text", detail="it has half of a character")
    if len(_TERM.findall(text)) > _MOST:
        raise UsageError("query is too long", detail=f"it has more than {_MOST} words", hint="leave some out")


def _add(to: _Alternative, match: re.Match[str], columns: Mapping[str, str]) -> None:
    """Add one term; punctuation alone is none."""
    column = columns.get(match["column"]) if match["column"] else None
    text = match["phrase"] if match["phrase"] is not None else match["word"]
    if match["column"] and column is None:
        text = f"{match['column']} {text}"
    starred = bool(match["star"]) or text.endswith("*")
    if any(char.isalnum() for char in text):
        term = '"' + text.replace('"', " ").rstrip("*") + '"' + " *" * starred
        target = to.unwanted if match["minus"] else to.wanted
        target.append(f"{column} : {term}" if column else term)


def _joined(alternatives: list[_Alternative]) -> str:
    if len(alternatives) == 1 and not alternatives[0].wanted and alternatives[0].unwanted:
        raise UsageError("query only says what not to find", hint="add a word to look for")
    if not all(each.wanted for each in alternatives):
        what = (
            "query has no word to look for"
            if len(alternatives) == 1
            else "query has a side of OR without a word"
        )
        raise UsageError(what, hint="write at least one letter or digit")
    return " OR ".join(each.expression() for each in alternatives)
