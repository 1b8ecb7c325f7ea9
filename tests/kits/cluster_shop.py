"""A shop whose fold misbehaves on orders of the test's choice, and what must come of it all the same.

The first task to fold such an order fails, kills its executor, or waits until Spark runs a second copy
of it. Each task that folds one is noted, so that a test can tell that it has happened.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import headwater
from headwater.views import open_views

START = 1_700_000_000_000_000
MINUTE = 60_000_000
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": BRIEF,
    "spark.executor.extraJavaOptions": BRIEF,
    "spark.sql.shuffle.partitions": "2",
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.efficiency.enabled": "false",
    "spark.locality.wait": "100ms",
}
SCHEMA = "id BIGINT, who STRING, amount BIGINT, at TIMESTAMP"
SHOP = '''
from headwater import Pipeline, dedup, latest, scan
from tills import add  # a module of the user's own, beside the file

shop = Pipeline("shop", log="file:./data")  # relative, and executors run elsewhere
schema = "id BIGINT, who STRING, amount BIGINT, at TIMESTAMP"
shop.source("orders", schema, event_time="at", lateness="3 hours", key="who")


@shop.stream(key="who")
def unique(orders):
    """Each order once."""
    return orders.transform(dedup(on="id", within="3 hours"))


@shop.view(key="who")
def totals(unique):
    """What each has spent."""
    return unique.transform(scan(add, by="who", schema="n BIGINT, total BIGINT"))


@shop.view(key="who")
def newest(orders):
    """The last order of each."""
    return orders.transform(latest(by="who"))
'''
TILLS = '''
import os
import signal
import time
from pathlib import Path

from pyspark import TaskContext

HERE = Path(__file__).parent
PATIENCE = 60.0
FATES = {int(n): fate for n, fate in (line.split() for line in (HERE / "fates").read_text().splitlines())}


def add(state, order):
    misbehave(order["id"])
    before = state or {"n": 0, "total": 0}
    return {"n": before["n"] + 1, "total": before["total"] + order["amount"]}


def misbehave(number):
    fate = FATES.get(number)
    if fate is None or not note(number):
        return
    if fate == "fails":
        raise RuntimeError("the first task fails")
    if fate == "kills":
        os.kill(executor(), signal.SIGKILL)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and (fate == "hangs" or len(seen(number)) < 2):
        time.sleep(0.02)


def note(number):
    """Note the task that folds an order, and tell whether it is the first."""
    context, first = TaskContext.get(), not seen(number)
    told = (context.stageId(), context.partitionId(), context.attemptNumber(), os.getpid())
    with open(HERE / f"tasks-{number}", "ab", buffering=0) as file:
        file.write((" ".join(map(str, told)) + "\\n").encode())
    return first


def executor():
    """Return the process that has started the one that has started this one."""
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])


def seen(number):
    path = HERE / f"tasks-{number}"
    return path.read_text().splitlines() if path.exists() else []
'''
COMMANDS = """
import json, sys
from headwater.cli import main
for command in json.loads(sys.argv[1]):
    if main(command, standalone_mode=False):  # its exit code
        sys.exit(1)
"""


class Task(NamedTuple):
    """A task that has folded an order."""

    stage: int
    partition: int
    attempt: int
    pid: int


class ClusterShop:
    """The shop in a directory: its orders, its runs, and its results."""

    def __init__(self, root: Path, fates: dict[int, str]):
        self.root, self.orders = root, list[dict[str, Any]]()
        self._chance = random.Random(7)
        (root / "shop.py").write_text(SHOP)
        (root / "tills.py").write_text(TILLS)
        (root / "fates").write_text("".join(f"{number} {fate}\n" for number, fate in fates.items()))
        with headwater.open(f"file:{root / 'data'}") as log:
            log.create_topic("orders", SCHEMA, event_time="at", key="who", partitions=2)

    def send(self, count: int) -> None:
        """Append orders, out of order by less than the lateness, every tenth of them twice."""
        first = len(self.orders)
        self.orders += [_order(number, self._chance) for number in range(first, first + count)]
        with (
            headwater.open(f"file:{self.root / 'data'}") as log,
            log.producer("orders", id="till") as producer,
        ):
            for start in range(first, first + count, 50):
                fresh = self.orders[start : start + 50]
                producer.send_batch(self._chance.sample(fresh + fresh[::10], len(fresh) + len(fresh[::10])))
                producer.flush()

    def finish(self) -> None:
        """Say that nothing more comes: what waits is folded."""
        with (
            headwater.open(f"file:{self.root / 'data'}") as log,
            log.producer("orders", id="till") as producer,
        ):
            producer.mark(START + 10**15)

    def run(
        self, master: str, commands: list[str], settings: dict[str, str], *, few: bool = True
    ) -> list[dict[str, Any]]:
        """Run commands in one process, and return the lines of JSON; executors compute ``few`` rows, too."""
        where = ["--master", master, *(f"--conf={key}={value}" for key, value in settings.items())]
        listed = json.dumps([[*command.split(), *where] for command in commands])
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HEADWATER_", "SPARK_"))}
        done = subprocess.run(
            [sys.executable, "-c", COMMANDS, listed],
            cwd=self.root,
            env={**kept, "HEADWATER_DRIVER_ROWS": "0"} if few else kept,
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert done.returncode == 0, done.stderr + done.stdout[-2000:] + self.printed()[-2000:]
        return [json.loads(line) for line in done.stdout.splitlines()]

    def printed(self) -> str:
        """Return what Spark has printed."""
        path = self.root / "data" / "pipelines" / "shop" / "spark.log"
        return path.read_text() if path.exists() else ""

    def tasks(self, number: int) -> list[Task]:
        """Return the tasks that have folded an order."""
        lines = (self.root / f"tasks-{number}").read_text().splitlines()
        return [Task(*map(int, line.split())) for line in lines]

    def check(self) -> None:
        """Compare what is stored with what plain Python makes of the orders."""
        with headwater.open(f"file:{self.root / 'data'}") as log:
            unique = [row["id"] for batch in log.read("shop.unique") for row in batch.to_pylist()]
        expected: dict[str, tuple[int, int, int]] = {}
        for each in self.orders:
            n, total, newest = expected.get(each["who"], (0, 0, 0))
            expected[each["who"]] = (n + 1, total + each["amount"], max(newest, each["at"]))
        with open_views(self.root / "data" / "pipelines" / "shop" / "views.db") as views:
            totals = {row["who"]: (row["n"], row["total"]) for row in views["totals"].scan().to_pylist()}
            newest = {row["who"]: row["at"].timestamp() * 1e6 for row in views["newest"].scan().to_pylist()}
        assert sorted(unique) == [each["id"] for each in self.orders]
        assert totals == {who: (n, total) for who, (n, total, _) in expected.items()}
        assert newest == {who: at for who, (_, _, at) in expected.items()}


def _order(number: int, chance: random.Random) -> dict[str, Any]:
    at = START + (number - chance.randint(0, 20)) * MINUTE
    return {"id": number, "who": f"c{number % 13}", "amount": chance.randint(0, 9), "at": at}
