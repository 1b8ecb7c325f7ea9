"""The harness keeps typed rows, whatever the pipeline's own log is and however others write to it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from headwater import Pipeline
from headwater.testing.harness import Harness


def test_a_pipeline_over_formats_of_a_broker_is_tested_with_rows(spark: SparkSession) -> None:
    web = Pipeline("web", log="kafka://nowhere:1?schema.registry.url=http://nowhere")
    web.table("users", "id BIGINT, tier STRING", key="id", format="protobuf", key_format="avro")

    @web.view(key="id")
    def tiers(users: DataFrame) -> DataFrame:
        return users

    with Harness(web, spark=spark) as running:
        running.send("users", [{"id": 1, "tier": "gold"}, {"id": 2, "tier": "tin"}])
        running.delete("users", 2)
        running.step()
        assert running.view("tiers") == [{"id": 1, "tier": "gold"}]
