"""What happens when a DataFrame goes through an operator: user code never learns which call it is."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from headwater import latest
from headwater.engine.exchange.frames import frame
from headwater.engine.plan import phases
from headwater.engine.plan.column_marks import event_time_of, marked
from headwater.engine.plan.empty_stream import empty_stream
from headwater.engine.plan.phases import Capturing
from headwater.errors import UsageError

SCHEMA = pa.schema([("who", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


def times(*pairs: tuple[str, int]) -> pa.Table:
    rows = [{"who": who, "n": n, "at": datetime(2026, 1, 1, 12, n, tzinfo=UTC)} for who, n in pairs]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def newest(moves: DataFrame) -> DataFrame:
    return moves.transform(latest(by="who")).filter("n > 0")


def test_over_rows_without_a_pipeline_the_operator_sees_them_all_at_once(spark: SparkSession) -> None:
    moves = marked(frame(spark, times(("a", 1), ("b", 2), ("a", 3))), "at")
    found = newest(moves)
    assert sorted((row.who, row.n) for row in found.collect()) == [("a", 3), ("b", 2)]
    assert event_time_of(found) == "at"


def test_over_a_stream_an_operator_runs_only_inside_a_pipeline(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="latest over a stream runs only inside a pipeline"):
        newest(empty_stream(spark, SCHEMA, "at").frame)


def test_the_stage_is_captured_and_the_code_goes_on_with_no_rows(spark: SparkSession) -> None:
    moves, capturing = empty_stream(spark, SCHEMA, "at").frame, Capturing()
    with phases.during(capturing):
        made = newest(moves.filter("n < 9"))
    assert capturing.stage is not None and capturing.results is not None
    assert (capturing.stage.name, capturing.stage.operator.key) == ("latest", ("who",))
    assert made.isStreaming and made is not capturing.output
    with pytest.raises(UsageError, match="inside a pipeline"):  # the phase ends with the block
        newest(moves)


def test_a_second_operator_is_refused(spark: SparkSession) -> None:
    with (
        phases.during(Capturing()),
        pytest.raises(UsageError, match="one stateful operator at the most: latest and latest"),
    ):
        newest(newest(empty_stream(spark, SCHEMA, "at").frame))


def test_the_code_after_an_operator_goes_on_with_the_results_that_it_is_given(spark: SparkSession) -> None:
    results = frame(spark, times(("c", 0), ("d", 5)))
    with phases.during(phases.after_operator(results)):
        assert [row.who for row in newest(empty_stream(spark, SCHEMA, "at").frame).collect()] == ["d"]
