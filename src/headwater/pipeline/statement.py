"""Which names a SQL query reads, found without Spark, so that a pipeline can be checked and drawn.

This is no parser: it follows parentheses and the words that come before the name of a relation,
and leaves everything else to Spark. Invariant: a name in a string, in a comment, or in the place of a
column or an alias is never taken for one that is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_TOKEN = re.compile(
    r"""\s+ | --[^\n]* | /\*.*?(?:\*/|\Z)                            # neither space nor comments
      | (?P<text> '(?:[^'\\]|\\.)*(?:'|\Z) | "(?:[^"\\]|\\.)*(?:"|\Z) | \d\w* )
      | `(?P<quoted>(?:[^`]|``)+)`
      | (?P<word>[^\W\d]\w*)
      | (?P<mark>\|>|\S)""",
    re.VERBOSE | re.DOTALL,
)
_BEGINS = frozenset({"SELECT", "WITH", "FROM", "TABLE", "VALUES"})
_ENDS = frozenset(
    ("WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "UNION",
     "EXCEPT", "INTERSECT", "MINUS", "WINDOW", "QUALIFY", "PIVOT", "UNPIVOT", "VALUES", "|>")
)  # fmt: skip
"""After these a comma is no longer one between relations."""


class _Token(NamedTuple):
    text: str
    name: str | None = None
    """The identifier, where it is one; quoted ones are never keywords."""


_NONE = _Token("")


def relations(statement: str) -> tuple[str, ...]:
    """Return the unqualified names that a query reads, in their order, without those it defines itself.

    >>> relations("WITH big AS (SELECT * FROM orders) SELECT c.name FROM big JOIN customers c ON true")
    ('orders', 'customers')
    """
    return _TokenWalk(list(_tokens(statement))).relations()


def is_query(statement: str) -> bool:
    """Tell whether a statement begins as one that has a result."""
    first = next((token.text for token in _tokens(statement) if token.text != "("), "")
    return first in _BEGINS


def _tokens(statement: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(statement):
        if match["word"]:
            yield _Token(match["word"].upper(), match["word"])
        elif match["quoted"]:
            yield _Token("`", match["quoted"].replace("``", "`"))
        elif match["text"] or match["mark"]:
            yield _Token(match["mark"] or "'")


@dataclass
class _Scope:
    """What is between two parentheses."""

    defines: str | None = None
    """The name that the query in here gets: ``defines AS (…)``."""
    fresh: bool = True
    query: bool = False
    listing: bool = False
    """Whether a comma is followed by another relation."""


class _TokenWalk:
    """One pass over the tokens of a statement."""

    def __init__(self, tokens: list[_Token]):
        self._tokens = tokens
        self._scopes = [_Scope()]
        self._expecting = False  # whether the next name is a relation's
        self._defined_names: set[str] = set()
        self._recursive = False
        self._relations: dict[str, None] = {}

    def relations(self) -> tuple[str, ...]:
        for index, token in enumerate(self._tokens):
            if token.text in ("(", ")"):
                self._parenthesis(index, token.text)
            elif self._at(index - 1).text != ".":
                self._step(index, token)
        return tuple(self._relations)

    def _at(self, index: int) -> _Token:
        return self._tokens[index] if 0 <= index < len(self._tokens) else _NONE

    def _parenthesis(self, index: int, mark: str) -> None:
        if mark == "(":
            self._scopes[-1].fresh = False
            self._scopes.append(_Scope(self._defined(index)))
            return
        self._expecting = False
        closed = self._scopes.pop() if len(self._scopes) > 1 else _Scope()
        if closed.defines is not None:
            self._defined_names.add(closed.defines.casefold())  # from here on it hides what has its name

    def _defined(self, index: int) -> str | None:
        """Return the name of the query that begins at a parenthesis: ``name [(columns)] AS (``."""
        if self._at(index - 1).text != "AS":
            return None
        before = index - 2
        if self._at(before).text == ")":
            while before > 0 and self._at(before).text != "(":
                before -= 1
            before -= 1
        name = self._at(before).name
        if name is not None and self._recursive:
            self._defined_names.add(name.casefold())
        return name

    def _step(self, index: int, token: _Token) -> None:
        scope = self._scopes[-1]
        fresh, scope.fresh = scope.fresh, False
        if token.text in ("SELECT", "WITH"):
            scope.query, scope.listing, self._expecting = True, False, False
        elif token.text == "FROM":
            clause = (scope.query or fresh) and self._at(index - 1).text != "DISTINCT"
            scope.listing = scope.listing or clause
            self._expecting = clause
        elif token.text == "RECURSIVE":
            self._recursive = True
        elif token.text in ("JOIN", "TABLE") or (token.text == "," and scope.listing):
            self._expecting = True
        elif token.text in _ENDS or (token.text == "LATERAL" and self._at(index + 1).text == "VIEW"):
            scope.listing = self._expecting = False
        elif token.text != "LATERAL" and self._expecting:
            self._relation(token, self._at(index + 1).text)

    def _relation(self, token: _Token, following: str) -> None:
        self._expecting = False
        plain = following not in ("(", ".")  # else a function, or a table of a catalog
        if token.name is not None and plain and token.name.casefold() not in self._defined_names:
            self._relations[token.name] = None
