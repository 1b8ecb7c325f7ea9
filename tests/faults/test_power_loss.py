"""A pipeline whose machine loses power: what was not synced may be gone, and the results are exact.

The short test takes the files as they would be left at several moments of one run, and lets each copy
go on. The long one loses power again and again, in the middle of recoveries too.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import headwater
from faults.test_pipeline_kill import KILLS, SEED, WORKER, Shop, _check_windows_and_joins, _kill, _prepare
from headwater.sinks.parquet import read
from headwater.views import open_views
from power_loss import Disk

LOSSES = 2
WATCHED, SAFE = ["log/pipelines", "files"], "views.db"
"""SQLite syncs its files itself, and so does the log: theirs are other tests."""


@pytest.mark.faults
@pytest.mark.long
def test_results_are_exact_whatever_a_power_loss_leaves(tmp_path: Path) -> None:
    _prepare(tmp_path / "root")
    disk, shop = Disk(tmp_path / "root", WATCHED, SAFE), Shop(tmp_path / "root")
    running = _start(disk.environment(), [disk.root], "pause17", tmp_path / "errors")
    try:
        copies = []
        for number in range(LOSSES):
            _until_paused(running, shop, tmp_path / "errors")
            copies.append(disk.after_loss(tmp_path / f"copy-{number}", SEED + number).root)
            os.killpg(running.pid, signal.SIGCONT)
    finally:
        _kill(running)
    shops = [_read(copy) for copy in copies]
    for each in shops:
        each.finish()
    _finish(copies, tmp_path / "errors")
    for copy, each in zip(copies, shops, strict=True):
        _check(copy, each)


@pytest.mark.long
@pytest.mark.timeout(KILLS * 120 + 400)
def test_power_is_lost_again_and_again(tmp_path: Path) -> None:
    root, chance = tmp_path / "root-0", random.Random(SEED)
    _prepare(root)
    disk, shop = Disk(root, WATCHED, SAFE), Shop(root)
    for number in range(KILLS):
        point = chance.randint(1, 60) if number % 2 == 0 else 0
        few = chance.choice(["0", "20000"])  # in workers, or in the driver
        environment = {**disk.environment(), "HEADWATER_DRIVER_ROWS": few}
        running = _start(environment, [disk.root], str(point), tmp_path / "errors")
        end = time.monotonic() + (60 if point else chance.uniform(8, 25))
        while time.monotonic() < end and running.poll() is None:
            shop.send()
            time.sleep(0.5)
        _kill(running)
        assert running.returncode == -signal.SIGKILL, (tmp_path / "errors").read_text()[-3000:]
        shop.log.close()
        disk = disk.after_loss(tmp_path / f"root-{number + 1}", SEED + number)
        shop.log = headwater.open(f"file:{disk.root / 'log'}")
    shop.finish()
    _finish([disk.root], tmp_path / "errors", "finish")
    _check(disk.root, shop)
    print(f"{KILLS} power losses; {len(shop.sent)} orders")


def _start(given: dict[str, str], roots: list[Path], task: str, errors: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(WORKER), os.pathsep.join(map(str, roots)), task, ""]
    with open(errors, "ab") as file:
        return subprocess.Popen(
            command, stderr=file, stdout=file, start_new_session=True, env={**os.environ, **given}
        )


def _until_paused(running: subprocess.Popen[bytes], shop: Shop, errors: Path) -> None:
    while os.waitid(os.P_PID, running.pid, os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        shop.send()
        time.sleep(0.2)
    found = os.waitid(os.P_PID, running.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert found is not None
    assert found.si_status == signal.SIGSTOP, errors.read_text()[-3000:]


def _finish(roots: list[Path], errors: Path, task: str = "catch up") -> None:
    finishing = _start({}, roots, task, errors)
    assert finishing.wait(280 + KILLS * 20) == 0, errors.read_text()[-3000:]


def _read(root: Path) -> Shop:
    """Return what had been sent when the power was lost, as the log has it."""
    shop = Shop(root)
    orders = {order["id"]: order for order in _rows(shop, "orders", "at")}
    shop.sent = list(orders.values())
    shop.rates = _rows(shop, "rates", "since")
    shop.payments = {row["id"]: row["paid"] for row in _rows(shop, "payments", "paid")}
    return shop


def _rows(shop: Shop, topic: str, time: str) -> list[dict[str, object]]:
    rows = [row for batch in shop.log.read(topic) for row in batch.to_pylist()]
    return [{**row, time: int(row[time].timestamp() * 1e6)} for row in rows]


def _check(root: Path, shop: Shop) -> None:
    orders = {order["id"]: order for order in shop.sent}
    unique = [row["id"] for batch in shop.log.read("shop.unique") for row in batch.to_pylist()]
    assert sorted(unique) == sorted(orders)
    totals: dict[str, tuple[int, int]] = {}
    newest: dict[str, int] = {}
    for order in orders.values():
        n, total = totals.get(order["who"], (0, 0))
        totals[order["who"]] = (n + 1, total + order["amount"])
        newest[order["who"]] = max(newest.get(order["who"], 0), order["at"])
    with open_views(root / "log" / "pipelines" / "shop" / "views.db") as views:
        found = {row["who"]: (row["n"], row["total"]) for row in views["totals"].scan().to_pylist()}
        latest = {row["who"]: int(row["at"].timestamp() * 1e6) for row in views["newest"].scan().to_pylist()}
        assert (found, latest) == (totals, newest)
        _check_windows_and_joins(views, shop, list(orders.values()))
    archive = sorted((row["id"], row["who"], row["amount"]) for row in read(root / "files").to_pylist())
    assert archive == sorted((order["id"], order["who"], order["amount"]) for order in orders.values())
