"""pytest fixtures for pipelines: put ``pytest_plugins = ["headwater.testing.fixtures"]`` into conftest.py.

They are not loaded by themselves: a test run without pipelines should not know of them. Invariant:
one Spark session serves all tests of a run, and every harness is closed when its test ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import pytest

from headwater.pipeline.pipeline import Pipeline
from headwater.testing.harness import Harness


class MakeHarness(Protocol):
    """What the fixture ``harness`` is."""

    def __call__(self, pipeline: Pipeline, *, limit: int = 500_000) -> Harness:
        """Return a harness for a pipeline, which closes itself."""
        ...


@pytest.fixture(scope="session")
def headwater_spark(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the Spark session of the run; the one that is there, or a new one, which ends with Python."""
    from headwater.engine.spark.session import session

    return session(output=tmp_path_factory.mktemp("spark") / "spark.log")


@pytest.fixture
def harness(headwater_spark: Any) -> Iterator[MakeHarness]:
    """Return what makes a ``Harness`` of a pipeline; ``docs/testing.md`` shows it at work."""
    with ExitStack() as opened:

        def make(pipeline: Pipeline, *, limit: int = 500_000) -> Harness:
            return opened.enter_context(Harness(pipeline, spark=headwater_spark, limit=limit))

        yield make
