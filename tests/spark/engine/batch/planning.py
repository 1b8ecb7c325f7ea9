"""The plan of a node, as a runner makes it."""

from __future__ import annotations

from headwater.engine.batch.inputs import Inputs
from headwater.engine.plan.node_plan import NodePlan, plan_node
from headwater.pipeline.node import Node


def planned(inputs: Inputs, name: str) -> NodePlan:
    """Return the plan of a node over some inputs."""
    node = inputs._pipeline[name]
    assert isinstance(node, Node)
    upstreams = {upstream: inputs._pipeline[upstream] for upstream in node.upstreams}
    return plan_node(node, upstreams, inputs.empty_streams(upstreams))
