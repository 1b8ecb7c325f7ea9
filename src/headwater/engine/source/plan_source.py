"""The inputs of a query as one source of Spark's, which plans them and is not read.

Spark starts a Python process for every source of a query, and asks each of them before every micro-batch.
So one source stands for all inputs, and its offsets are theirs, by name: a query over twenty topics starts
as soon as one over one. Nodes read what lies between two offsets themselves.

Invariant: whoever plans, in Spark's process or beside it, what is planned is the same.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader

from headwater.engine.source.offset_planner import OffsetPlanner
from headwater.engine.source.planner_process import RemotePlanner


class PlanSource(DataSource):
    """The inputs of a query.

    Options: ``inputs``, the options of each, by name, as JSON; or ``planner``, the address of who has them.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "headwater-plan"

    def schema(self) -> str:
        """Return one column, since Spark wants one."""
        return "nothing INT"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Return what plans, or asks who does."""
        if "planner" in self.options:
            return RemotePlanner(self.options["planner"])
        return OffsetPlanner(json.loads(self.options["inputs"]))
