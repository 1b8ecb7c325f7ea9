"""A pipeline on a real standalone cluster, where tasks fail and are run twice: one run, looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster_shop import SETTINGS, ClusterShop
from spark_cluster import Cluster

HANGS, FAILS, RACES = 100, 350, 900
"""Orders that are folded in micro-batches of their own: a task is run twice when another has ended."""
Lines = list[dict[str, Any]]
pytestmark = [pytest.mark.timeout(600), pytest.mark.long]


@pytest.fixture(scope="module")
def ran(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[ClusterShop, Lines]:
    fates = {HANGS: "hangs", FAILS: "fails", RACES: "races"}
    shop = ClusterShop(tmp_path_factory.mktemp("cluster"), fates)
    shop.send(1000)
    shop.finish()
    commands = ["run shop.py --until-caught-up --limit 300 --format ndjson", "verify shop.py --format ndjson"]
    return shop, shop.run(cluster.url, commands, SETTINGS)


def test_results_are_exact_in_many_batches_on_both_workers(
    ran: tuple[ClusterShop, Lines], cluster: Cluster
) -> None:
    shop, told = ran
    shop.check()
    last = {each["node"]: each for each in told[-6:-3]}
    assert (last["unique"]["rows"], last["unique"]["duplicates"], last["unique"]["late"]) == (1100, 100, 0)
    assert all(each["batches"] > 3 and each["lag"] == 0 for each in last.values()), last
    used = {
        path.relative_to(cluster.directory).parts[0] for path in cluster.directory.glob("worker-*/app-*/*")
    }
    assert used == {"worker-0", "worker-1"}


def test_it_is_exact_with_the_settings_that_users_have(cluster: Cluster, tmp_path: Path) -> None:
    shop = ClusterShop(tmp_path, {})
    command = "run shop.py --until-caught-up --format ndjson"
    shop.send(21_000)  # more than the driver computes itself
    shop.run(cluster.url, [command], SETTINGS, few=False)
    shop.send(100)  # fewer
    shop.finish()
    shop.run(cluster.url, [command, "verify shop.py --format ndjson"], SETTINGS, few=False)
    shop.check()


def test_the_proof_runs_on_the_cluster_too(ran: tuple[ClusterShop, Lines]) -> None:
    verdicts = {each["node"]: (each["ok"], each["equal"]) for each in ran[1][-3:]}
    assert verdicts == {"unique": (True, 1000), "newest": (True, 13), "totals": (True, 13)}


def test_a_task_that_failed_was_tried_again(ran: tuple[ClusterShop, Lines]) -> None:
    failed, again = ran[0].tasks(FAILS)[:2]
    assert (failed.attempt, again.attempt) == (0, 1)
    assert failed[:2] == again[:2]  # the same task of the same micro-batch
    assert failed.pid != again.pid


@pytest.mark.parametrize("order", [HANGS, RACES])
def test_a_task_that_took_long_was_run_twice_at_a_time(ran: tuple[ClusterShop, Lines], order: int) -> None:
    first, second = ran[0].tasks(order)[:2]
    assert first[:2] == second[:2]
    assert first.attempt != second.attempt
    assert first.pid != second.pid
