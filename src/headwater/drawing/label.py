"""What a drawing says about each declaration beside its name, and in which order.

Invariant: all drawings say the same.
"""

from __future__ import annotations

from headwater.pipeline.declaration import Declaration
from headwater.pipeline.pipeline import Pipeline


def label(declared: Declaration) -> str:
    """Return the kind and the key."""
    return f"{declared.kind}, key {', '.join(declared.key)}" if declared.key else declared.kind


def everything(pipeline: Pipeline) -> tuple[Declaration, ...]:
    """Return captures, sources and tables, then nodes, each after what it reads."""
    return (*pipeline.captures, *pipeline.input_topics, *pipeline.order())
