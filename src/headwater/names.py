"""Names as users write them: several between commas, and one that may have any character.

Invariant: such text is read and written here alone, so ``"shop, day"`` means the same
wherever columns are named.
"""

from __future__ import annotations

from collections.abc import Iterable


def parts(text: str) -> tuple[str, ...]:
    """Return what stands between commas, without the spaces around it; an empty part is one too.

    >>> parts("shop, day,")
    ('shop', 'day', '')
    """
    return tuple(part.strip() for part in text.split(","))


def listed(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names in a text, without empty ones, or those of a list as they are.

    >>> listed("shop, day,")
    ('shop', 'day')
    """
    return tuple(filter(None, parts(names))) if isinstance(names, str) else tuple(names)


def backquoted(name: str) -> str:
    """Return a name as Spark's SQL writes it, whatever characters it has.

    >>> backquoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"
