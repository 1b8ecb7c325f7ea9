"""What a node was when its checkpoint began: an edit that its state cannot survive is refused.

Invariant: a query goes on from a checkpoint only if the checkpoint's state and positions mean the
same to it as to the query that wrote them.
"""

from __future__ import annotations

import uuid
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from headwater import durable
from headwater import schema as schemas
from headwater.engine.exchange import routing
from headwater.engine.home import notes
from headwater.engine.plan.fingerprint import fingerprint
from headwater.engine.plan.node_plan import NodePlan
from headwater.engine.plan.phases import Stage
from headwater.errors import PipelineError
from headwater.operators.memory.slots import SLOTS

_NAMES = {
    "kind": "what it is",
    "inputs": "the topics it reads",
    "operator": "its operator",
    "version": "what its operator keeps",
    "settings": "its operator's settings",
    "buckets": "how its keys are spread over buckets",
    "rows": "the columns that go into its operator",
    "key": "its key",
    "columns": "its columns",
}


_NO_STAGE = dict.fromkeys(("operator", "version", "settings", "buckets", "rows"))


def definition(plan: NodePlan, topics: list[str]) -> dict[str, Any]:
    """Return what must stay the same for as long as a checkpoint is used."""
    stage = plan.stage
    return {
        "kind": plan.node.kind,
        "inputs": topics,
        **(_NO_STAGE if stage is None else _of_stage(stage)),
        "key": list(plan.node.key),
        "columns": schemas.ddl(plan.schema),
    }


def check_unchanged(home: Path, plan: NodePlan, topics: list[str]) -> None:
    """Write the definition beside a new checkpoint; compare it with that of an old one."""
    path, now = home / "definition.json", definition(plan, topics)
    before = notes.read(path)
    if before is None:
        durable.make(home)
        notes.write(path, {**now, "id": uuid.uuid4().hex})
        return
    for name, what in _NAMES.items():
        if before.get(name) != now[name]:
            raise PipelineError(
                f"{plan.node.title} has changed: {what}",
                detail=_difference(before.get(name), now[name]),
                hint=f"{plan.node.recompute_hint}, or take the change back",
                location=plan.node.location,
            )


def _difference(before: Any, now: Any) -> str:
    """Return what something was and is; of settings, those that have changed."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        before, now = ({name: each.get(name) for name in names} for each in (before, now))
    return f"was {before}, is {now}"


def _of_stage(stage: Stage) -> dict[str, Any]:
    return {
        "operator": stage.name,
        "version": stage.operator.version,
        "settings": _settings(stage.operator),
        "buckets": {"slots": SLOTS, "routing": routing.VERSION},
        "rows": schemas.ddl(stage.schema),
    }


def _settings(operator: Any) -> dict[str, str]:
    """Return an operator's settings as text; a function is known by its name and what it does."""
    assert is_dataclass(operator)
    values = {field.name: getattr(operator, field.name) for field in fields(operator) if field.compare}
    return {name: _function(value) if callable(value) else str(value) for name, value in values.items()}


def _function(function: Any) -> str:
    return f"{getattr(function, '__qualname__', type(function).__qualname__)} ({fingerprint(function)})"
