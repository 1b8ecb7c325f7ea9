"""A pipeline opened for inspection: its log, its views, and its nodes as their last run has left them.

What runs it is made of this too, and writes besides. Invariant: nothing is made or changed here, neither
in the log nor in the pipeline's home nor in a store of views; a home in an object store is read anew.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import SparkSession

from headwater.closing import Closing
from headwater.engine.batch.inputs import Inputs
from headwater.engine.batch.node_run import NodeRun
from headwater.engine.failure.dead_letters import DeadLetters
from headwater.engine.home.versions import Version, Versions
from headwater.engine.home.view_locations import views_of
from headwater.engine.plan.derived import check_derived_topic
from headwater.engine.plan.node_plan import plan_node
from headwater.engine.stored_home import check_storable, refresh
from headwater.errors import UsageError
from headwater.log import Log
from headwater.log.open import open as open_log
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline
from headwater.views.store import Views


@dataclass(frozen=True)
class Parts:
    """What a pipeline works with."""

    log: Log
    spark: SparkSession
    inputs: Inputs
    views: Views


class Inspection(Closing):
    """A pipeline, and what is there of it."""

    def __init__(self, pipeline: Pipeline, parts: Parts):
        self.pipeline = pipeline
        self.log, self.spark, self.inputs = parts.log, parts.spark, parts.inputs
        self.store = parts.views
        self.versions = Versions(pipeline, self.store)
        self._versions: dict[str, Version] = {}

    def node_run(self, name: str) -> NodeRun:
        """Return a node, as it is to run or has run."""
        return self._node_run(self._node(name), self.version(name))

    def version(self, name: str) -> Version:
        """Return the version of a node that was in force when it was first asked for."""
        if name not in self._versions:
            self._versions[name] = self.versions.current(self._node(name))
        return self._versions[name]

    def late_topic(self, node: Node) -> str:
        """Return the topic of the rows that came too late for a node."""
        return f"{self.pipeline.name}.{node.name}.late"

    def dead_letters(self, node: Node) -> DeadLetters:
        """Return the records that a node has set aside."""
        return DeadLetters(self.log, self.pipeline.name, node)

    def close(self) -> None:
        """Release everything but Spark."""
        self.store.close()
        self.log.close()

    def _node(self, name: str) -> Node:
        declared = self.pipeline[name]
        if not isinstance(declared, Node):
            raise UsageError(f"{declared.title} is no node", hint="name a view, a stream or a sink")
        return declared

    def _node_run(self, node: Node, version: Version) -> NodeRun:
        upstreams = {name: self.pipeline[name] for name in node.upstreams}
        inputs = self.inputs.without(self.dead_letters(node).skips())
        plan = plan_node(node, upstreams, inputs.empty_streams(upstreams))
        check_derived_topic(plan)
        return NodeRun(plan, inputs, version.home, self.pipeline.home_store)


def inspect_pipeline(pipeline: Pipeline, spark: SparkSession) -> Inspection:
    """Open a pipeline that has run, for inspection."""
    check_runnable(pipeline)
    refresh(pipeline)
    with ExitStack() as opened:  # what is open is closed again if the rest fails
        log = opened.enter_context(open_log(pipeline.log))
        views = opened.enter_context(views_of(pipeline))
        inspection = Inspection(pipeline, Parts(log, spark, Inputs(spark, pipeline, log), views))
        opened.pop_all()
    return inspection


def check_runnable(pipeline: Pipeline) -> None:
    """Refuse a pipeline whose parts do not fit together, or whose log no other process can read."""
    pipeline.check()
    check_storable(pipeline)
    if pipeline.log == "memory:":
        raise UsageError(
            "a pipeline cannot run on a log in memory",
            hint="Spark's workers are other processes: use file:",
        )
