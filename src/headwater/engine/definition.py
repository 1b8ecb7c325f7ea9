"""What a node was when its checkpoint began: an edit that its state cannot survive is refused.

Invariant: a query goes on from a checkpoint only if the checkpoint's state and positions mean the
same to it as to the query that wrote them.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from headwater import durable
from headwater import schema as schemas
from headwater.engine import notes
from headwater.engine.shape import Shape
from headwater.errors import PipelineError

_NAMES = {
    "kind": "what it is",
    "inputs": "the topics it reads",
    "operator": "its operator",
    "settings": "its operator's settings",
    "rows": "the columns that go into its operator",
    "key": "its key",
    "columns": "its columns",
}


def definition(shape: Shape, topics: list[str]) -> dict[str, Any]:
    """Return what must stay the same for as long as a checkpoint is used."""
    stage = shape.stage
    return {
        "kind": shape.node.kind,
        "inputs": topics,
        "operator": stage.name if stage else None,
        "settings": _settings(stage.operator) if stage else None,
        "rows": schemas.ddl(stage.schema) if stage else None,
        "key": list(shape.node.key),
        "columns": schemas.ddl(shape.schema),
    }


def check(home: Path, shape: Shape, topics: list[str]) -> None:
    """Write the definition beside a new checkpoint; compare it with that of an old one."""
    path, now = home / "definition.json", definition(shape, topics)
    before = notes.read(path)
    if before is None:
        durable.make(home)
        notes.write(path, now)
        return
    for name, what in _NAMES.items():
        if before.get(name) != now[name]:
            raise PipelineError(
                f"{shape.node.title} has changed: {what}",
                detail=f"was {before.get(name)}, is {now[name]}",
                hint=f"{shape.node.computed_anew}, or take the change back",
                place=shape.node.place,
            )


def _settings(operator: Any) -> dict[str, str]:
    """Return an operator's settings as text; a function is known by its name."""
    assert is_dataclass(operator)
    told = {field.name: getattr(operator, field.name) for field in fields(operator) if field.compare}
    return {name: getattr(value, "__qualname__", None) or str(value) for name, value in told.items()}
