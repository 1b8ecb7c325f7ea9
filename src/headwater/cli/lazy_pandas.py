"""Keeps pandas out of commands that have no use for it: it takes half a second and more to load.

Arrow looks for pandas when it converts its first value, whether or not any is needed. Here it looks while
pandas cannot be found; where its data frames are asked for, Arrow looks again, and finds it. Invariant: a
command in whose process data frames may become Arrow's runs as if this were not there.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any

import pyarrow as pa


class _Hidden(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def keep_out() -> None:
    """Have Arrow look for pandas in vain; nothing is changed where it is loaded already."""
    if "pandas" in sys.modules:
        return
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(hidden)


def let_in() -> None:
    """Have Arrow know pandas, as it does by itself."""
    pa.array([None]).to_pandas()
