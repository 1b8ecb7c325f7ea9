"""The modules of ``examples/shop``, imported anew and gone again: tests of one process share no shop."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHOP = Path(__file__).parents[2] / "examples" / "shop"


@contextmanager
def fresh_shop_modules() -> Iterator[None]:
    """Import the example's modules anew within the block; none of them stays behind."""
    _forget()
    try:
        yield
    finally:
        _forget()


def _forget() -> None:
    for name in ("shop", "feed", "crm", "expected"):
        sys.modules.pop(name, None)
