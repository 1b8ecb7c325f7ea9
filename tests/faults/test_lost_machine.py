"""A home in a bucket of a real S3 server: machines are killed and their disks wiped, others go on.

The log is on a share, here a directory that outlives the kills; views are in PostgreSQL.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headwater
import s3_server
from headwater.views import open_views

KILLS = int(os.environ.get("FAULT_KILLS", "2"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
WORKER = Path(__file__).with_name("stored_home_worker.py")
START = 1_700_000_000_000_000


class Machines:
    """Machines on which the pipeline runs, one after the other; nothing of one is there on the next."""

    def __init__(self, root: Path, s3: s3_server.Server, database: str):
        self.root, self._number = root, 0
        self.log, self._database = f"file:{root / 'log'}", database
        self._home = f"s3://{s3.new_bucket()}/shop?endpoint={s3.endpoint}"

    def start(self, task: str) -> subprocess.Popen[str]:
        self._number += 1
        command = [sys.executable, str(WORKER), task, self.log, self._home, self._database]
        return subprocess.Popen(
            command,
            env={**os.environ, **self._environment()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, task: str) -> tuple[int, str]:
        """Run until it dies or is done, and wipe the disk."""
        process = self.start(task)
        _, said = process.communicate(timeout=200)
        self.wipe()
        return process.returncode, said

    def wipe(self) -> None:
        shutil.rmtree(self._disk)

    @property
    def _disk(self) -> Path:
        return self.root / f"machine-{self._number}"

    def _environment(self) -> dict[str, str]:
        source = Path(headwater.__file__).parents[1]
        return {
            "PYTHONPATH": os.pathsep.join([str(source), str(WORKER.parent)]),
            "XDG_CACHE_HOME": str(self._disk),
            "HEADWATER_DRIVER_ROWS": str(20_000 * (self._number % 2)),  # in the driver, or in workers
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "wonderland-7391",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


class Orders:
    """What was sent, and what must come of it."""

    def __init__(self, log: str):
        self._log, self._chance = headwater.open(log), random.Random(SEED)
        self.sent: list[dict[str, Any]] = []
        schema = "id BIGINT, who STRING, amount BIGINT, at TIMESTAMP"
        self._log.create_topic("orders", schema, event_time="at", key="who")

    def send(self, count: int) -> None:
        """Send orders, some of them again."""
        fresh = [self._order(len(self.sent) + number) for number in range(count)]
        again = self._chance.sample(self.sent, min(len(self.sent), 20))
        with self._log.producer("orders", id="till") as producer:
            producer.send_batch(fresh + again)
        self.sent += fresh

    def _order(self, number: int) -> dict[str, Any]:
        at = START + number * 30_000_000
        return {"id": number, "who": f"c{number % 7}", "amount": self._chance.randint(0, 9), "at": at}

    def finish(self) -> None:
        """Promise that nothing comes any more."""
        with self._log.producer("orders", id="till") as producer:
            producer.mark(START + 10**12)

    def check(self, database: str) -> None:
        """Compare a derived topic and views with what was sent."""
        unique = [row["id"] for batch in self._log.read("shop.unique") for row in batch.to_pylist()]
        assert sorted(unique) == [order["id"] for order in self.sent]
        with open_views(database) as views:
            rows = views["totals"].scan().to_pylist()
            hours = views["by_hour"].scan().to_pylist()
        assert {row["who"]: (row["n"], row["total"]) for row in rows} == self.totals()
        assert sum(row["total"] for row in hours) == sum(order["amount"] for order in self.sent)

    def totals(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for order in self.sent:
            count, total = found.get(order["who"], (0, 0))
            found[order["who"]] = count + 1, total + order["amount"]
        return found


@pytest.mark.faults
@pytest.mark.slow
def test_a_pipeline_goes_on_elsewhere_when_its_machine_is_killed_and_its_disk_wiped(
    s3: s3_server.Server, database: str, tmp_path: Path
) -> None:
    machines, chance = Machines(tmp_path, s3, database), random.Random(SEED)
    orders = Orders(machines.log)
    for _ in range(KILLS):
        orders.send(3000)
        code, said = machines.run(str(chance.randint(1, 40)))
        assert code == -9, said
        assert "died at" in said
    orders.send(100)
    orders.finish()
    code, said = machines.run("finish")
    assert code == 0, said
    orders.check(database)


@pytest.mark.faults
@pytest.mark.long
def test_a_runner_that_another_machine_has_replaced_is_fenced(
    s3: s3_server.Server, database: str, tmp_path: Path
) -> None:
    machines = Machines(tmp_path, s3, database)
    orders = Orders(machines.log)
    orders.send(500)
    old = machines.start("batches")
    assert old.stdout is not None and old.stdin is not None
    assert old.stdout.readline() == "caught up\n"
    orders.send(500)
    code, said = machines.run("finish")
    assert code == 0, said
    orders.send(500)
    _, said = old.communicate("go on\n", timeout=200)
    assert old.returncode != 0
    assert "another runner has taken over" in said
    orders.finish()
    code, said = machines.run("finish")
    assert code == 0, said
    orders.check(database)
