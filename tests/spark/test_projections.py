"""Views over the events of a decider: an ordinary source, read after one's own command, and right."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from account_kit import Deposit, Withdraw, account
from headwater import Pipeline
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner


def test_a_view_of_events_shows_what_a_command_did(spark: SparkSession, tmp_path: Path) -> None:
    decider = account()
    pipeline = Pipeline("bank", log=f"file:{tmp_path / 'log'}", home=tmp_path / "home")
    pipeline.source("account", decider.schema.ddl, key="key", event_time="recorded_at")

    @pipeline.view(key=["key", "recorded_at"])
    def statements(account: DataFrame) -> DataFrame:
        amount = "CASE event WHEN 'Deposited' THEN cents ELSE -cents END AS cents"
        return account.selectExpr("key", "recorded_at", amount)

    with decider.open(pipeline.log) as bank:
        for _ in range(5):
            bank.execute("ada", Deposit(100))
        reply = bank.execute("ada", Withdraw(30), request_id="r1")
        with Runner(pipeline, spark=spark, patient=True) as runner:
            runner.catch_up()
            rows = runner.store.view("statements").scan(wait_for=reply.position, timeout=10).to_pylist()
            assert sum(row["cents"] for row in rows) == bank.state("ada") == 470
            assert verify(runner, "statements").ok
