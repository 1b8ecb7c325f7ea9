"""What a drawing says about each declaration beside its name, and who reads what.

Invariant: all drawings say the same.
"""

from __future__ import annotations

from headwater.pipeline.node import Declaration, Node
from headwater.pipeline.pipeline import Pipeline


def label(declared: Declaration) -> str:
    """Return the kind and the key."""
    return f"{declared.kind}, key {', '.join(declared.key)}" if declared.key else declared.kind


def everything(pipeline: Pipeline) -> tuple[Declaration, ...]:
    """Return sources and tables, then nodes, each after what it reads."""
    return (*pipeline.sources, *pipeline.tables, *pipeline.order())


def upstreams(declared: Declaration) -> tuple[str, ...]:
    """Return the names of what a declaration reads: nothing, but for nodes."""
    return declared.upstreams if isinstance(declared, Node) else ()
