"""Many tasks that fail, hang, run twice, or take their executor with them; then the same pipeline locally."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_shop import SETTINGS, ClusterShop
from spark_cluster import Cluster

ORDERS, APART = 2500, 400
FOLDED = ORDERS - 450
"""Orders that are surely folded before the end is told: a clock is behind by the lateness."""
COMMANDS = ["run shop.py --until-caught-up --limit 300 --format ndjson", "verify shop.py --format ndjson"]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_no_task_spoils_state_or_cache_and_local_mode_goes_on_from_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    fates = {number: ("hangs", "races")[number // APART % 2] for number in range(100, FOLDED, APART)}
    fates |= dict.fromkeys(range(230, FOLDED, APART), "fails")
    fates |= dict.fromkeys(range(360, FOLDED, 3 * APART), "kills")
    shop = ClusterShop(tmp_path, fates)
    shop.send(ORDERS)
    told = shop.run(cluster.url, COMMANDS, SETTINGS)
    assert all(each["ok"] for each in told[-3:])
    shop.send(500)
    shop.finish()
    told = shop.run("local[2]", COMMANDS, SETTINGS)
    assert all(each["ok"] for each in told[-3:])
    shop.check()
    for number in fates:
        first, second = shop.tasks(number)[:2]
        assert first[:2] == second[:2], f"order {number}"
        assert first.pid != second.pid, f"order {number}"
