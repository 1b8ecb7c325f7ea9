"""What a unique index is over, where that is more than columns: its expressions, and which rows it is of.

SQLite tells an index's columns, but of expressions and conditions only the statement that has made it, and
the same of generated columns. Such statements are read here; SQLite has checked them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_TOKEN = re.compile(
    r"""(?P<skipped>\s+|--[^\n]*|/\*.*?\*/)"""
    r"""|(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])"""
    r"""|(?P<word>\w+)|(?P<mark>.)""",
    re.DOTALL,
)
_DIRECTIONS = ("ASC", "DESC")
_Tokens = list[re.Match[str]]


def index_terms(sql: str) -> tuple[list[str], str | None]:
    """Return the terms of an index, without their directions, and the condition of its rows if it has one.

    >>> index_terms('CREATE UNIQUE INDEX i ON t (lower(email) DESC, "a,b") WHERE active')
    (['lower(email)', '"a,b"'], 'active')
    """
    tokens = [found for found in _TOKEN.finditer(sql) if found.lastgroup != "skipped"]
    # Names in quotes are one token, so the first parenthesis is the list's.
    opening = next(number for number, found in enumerate(tokens) if found[0] == "(")
    terms: list[_Tokens] = [[]]
    depth = 1
    for number, found in enumerate(tokens[opening + 1 :], opening + 1):
        depth += (found[0] == "(") - (found[0] == ")")
        if depth == 0:
            return [_text(sql, _undirected(term)) for term in terms], _condition(sql, tokens[number + 1 :])
        if depth == 1 and found[0] == ",":
            terms.append([])
        else:
            terms[-1].append(found)
    raise ValueError(f"an index without an end: {sql}")


def generated_expressions(sql: str, names: Sequence[str]) -> dict[str, str]:
    """Return what generated columns are computed from, by a table's statement and the names of its columns.

    >>> generated_expressions("CREATE TABLE t (a INT, b TEXT AS (lower(a)) CHECK (b > 0), UNIQUE (a))", "ab")
    {'b': '(lower(a))'}
    """
    definitions, _ = index_terms(sql)
    found = ((name, _expression(text)) for name, text in zip(names, definitions, strict=False))
    return {name: expression for name, expression in found if expression}


def _expression(definition: str) -> str | None:
    """Return what stands in parentheses behind AS, in a column's definition."""
    tokens = [found for found in _TOKEN.finditer(definition) if found.lastgroup != "skipped"]
    depth, start = 0, None
    for number, found in enumerate(tokens):
        depth += (found[0] == "(") - (found[0] == ")")
        if start is not None and depth == 0:
            return definition[start : found.end()]
        if depth == 0 and found[0].upper() == "AS" and number:
            start = tokens[number + 1].start()
            # The parenthesis comes next, so that the depth is not 0 until it is closed.
    return None


def _undirected(term: _Tokens) -> _Tokens:
    return term[:-1] if len(term) > 1 and term[-1][0].upper() in _DIRECTIONS else term


def _condition(sql: str, tokens: _Tokens) -> str | None:
    return _text(sql, tokens[1:]) if tokens and tokens[0][0].upper() == "WHERE" else None


def _text(sql: str, tokens: _Tokens) -> str:
    return sql[tokens[0].start() : tokens[-1].end()]
