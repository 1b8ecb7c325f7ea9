"""What a runner is told that another has replaced, by whichever sink finds it out.

Invariant: it is a ``Fenced``, whatever the target is, so that the runner ends and does not try again.
"""

from __future__ import annotations

from headwater.errors import Fenced

_HINT = "let this runner end: the other goes on from the last batch"


def taken_over(
    what: str, detail: str = "this one is no longer the newest, and writes nothing more"
) -> Fenced:
    """Return the error for a runner after which another has begun.

    >>> print(taken_over('view "stock"').message)
    another runner has taken over view "stock"
    """
    return Fenced(f"another runner has taken over {what}", detail=detail, hint=_HINT)


def dropped(what: str, version: int) -> Fenced:
    """Return the error for a runner whose version is no longer there."""
    return Fenced(
        f"version {version} of {what} has been dropped",
        detail="nothing was written",
        hint="a rebuild has taken its place; let this runner end",
    )
