"""Whether somebody tells the time to a node that waits for it.

A stream writes the clock of its node into its topic. Where no source above has an event time there is none,
and a window over such a stream would never end, without a word. Invariant: what passes here hears of time.
"""

from __future__ import annotations

from headwater.engine.plan.node_plan import NodePlan
from headwater.errors import PipelineError
from headwater.pipeline.declaration import InputTopic
from headwater.pipeline.pipeline import Pipeline


def check_hears_time(plan: NodePlan, pipeline: Pipeline) -> None:
    """Refuse a node whose operator waits for time, over an upstream that never hears of it."""
    if plan.stage is None or not plan.stage.operator.waits:
        return
    for name in plan.upstreams:
        inputs = [each for each in (pipeline[name], *pipeline.upstream(name)) if isinstance(each, InputTopic)]
        if not any(each.event_time is not None for each in inputs):
            sources = " and ".join(f'"{each.name}"' for each in inputs)
            raise PipelineError(
                f"{plan.node.title} waits for time to pass, and {pipeline[name].title} never hears of it",
                detail=f"{plan.stage.name} gives results when the clock has passed them; that of a stream"
                f" comes from its sources, and {sources} has none",
                hint=f'declare event_time= at {sources}: a column, or an expression such as "_timestamp"',
                location=plan.node.location,
            )
