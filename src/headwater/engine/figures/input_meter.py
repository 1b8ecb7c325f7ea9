"""How fast records come in, by source and table, and what time their nodes have heard there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headwater.engine.figures.runner_report import InputFigures
from headwater.engine.figures.status import RowRate
from headwater.engine.source.watermark import NEVER
from headwater.pipeline.declaration import InputTopic

if TYPE_CHECKING:  # it imports pyspark
    from headwater.engine.runner import Runner


class InputMeter:
    """Reads the inputs of a runner now and then."""

    def __init__(self, runner: Runner):
        self._runner = runner
        self._rates = {each.name: RowRate() for each in runner.pipeline.input_topics}

    def read(self) -> list[InputFigures]:
        """Return every source and table, as declared."""
        return [self._input(each) for each in self._runner.pipeline.input_topics]

    def _input(self, declared: InputTopic) -> InputFigures:
        log = self._runner.log
        first, last = (log.resolve(declared.topic, end).offsets for end in ("earliest", "latest"))
        end = sum(last.values())
        rate = self._rates[declared.name].over(end, time.monotonic())
        records = end - sum(first.get(partition, 0) for partition in last)
        return InputFigures(declared.name, records, round(rate, 1), self._clock(declared.name))

    def _clock(self, name: str) -> int | None:
        """Return how far time has come there, by the node that has read the furthest."""
        reached = [running.node_run.counts.reached for running in list(self._runner.nodes.values())]
        known = [each.inputs[name].watermark for each in reached if each is not None and name in each.inputs]
        return max((each for each in known if each is not None and each > NEVER), default=None)
