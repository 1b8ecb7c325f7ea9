"""Whether a pipeline is right, before anything of it runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from headwater.api import session
from headwater.api.background import run_in_thread
from headwater.api.captures import check_captures
from headwater.api.subject import Subject, checked
from headwater.pipeline.pipeline import Pipeline
from headwater.schema import ddl
from headwater.values.json_ready import JsonReady


@dataclass(frozen=True)
class NodeColumns(JsonReady):
    """A node that was found right, and the columns of its result."""

    node: str
    kind: str
    key: tuple[str, ...]
    schema: pa.Schema

    @property
    def columns(self) -> str:
        """The columns as Spark writes them."""
        return ddl(self.schema)

    def facts(self) -> dict[str, Any]:
        """Return it with the columns as text."""
        return {"node": self.node, "kind": self.kind, "key": self.key, "columns": self.columns}


def check(pipeline: Subject, *, brief: bool = False) -> list[NodeColumns]:
    """Return the columns of every node of a pipeline, or raise the first thing that is wrong.

    Every function is called once, over no rows. Captured tables are compared with those of their databases;
    no log is opened, and nothing is written. What passes here is
    not refused when the pipeline runs, unless for what is stored already. ``Pipeline.problems`` tells without
    Spark all that keeps the parts from fitting together. Spark is started for it; ``brief`` says that the
    process ends soon, so that Java need not compile well.
    """
    found = checked(pipeline)
    check_captures(found)
    schemas = run_in_thread(partial(_schemas, found, brief))
    return [NodeColumns(node.name, node.kind, node.key, schemas[node.name]) for node in found.order()]


def _schemas(pipeline: Pipeline, brief: bool) -> dict[str, pa.Schema]:
    spark = session.start_aside("local[1]" if brief else None, brief=brief)
    from headwater.engine.plan.checking import check

    return check(pipeline, spark)
