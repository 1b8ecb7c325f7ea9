"""Pipelines whose broker wants a password over TLS, or tokens: they run, and no secret is to be seen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

import headwater
from headwater.errors import HeadwaterError, LogUnavailable
from kafka_broker import PASSWORD, USER
from kafka_kit import until
from kafka_security import SECRETS, SecureBroker
from oidc_provider import CLIENT_SECRET

pytestmark = pytest.mark.kafka
PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, filename=sys.argv[3])
import headwater
from headwater import Pipeline, agg, windows

shop = Pipeline("shop", log=sys.argv[1], home=sys.argv[2])
shop.source("orders", "id BIGINT, at TIMESTAMP", event_time="at")

@shop.stream()
def even(orders):
    return orders.where("id % 2 = 0")

@shop.view(key="window_start")
def counts(orders):
    return orders.transform(windows.tumbling("1 minute", n=agg.count()))

headwater.run(shop, until_caught_up=True)
print(shop, vars(shop), headwater.status(shop), headwater.verify(shop))

from pyspark.sql import SparkSession
from headwater import spark as plain
spark = SparkSession.builder.getOrCreate()
plain.register(spark)
frame = spark.read.format("headwater").option("url", sys.argv[1]).option("topic", "shop.even").load()
print("rows", frame.count())
frame.explain(True)
print(spark.sparkContext.getConf().getAll())
try:
    spark.read.format("headwater").option("url", sys.argv[1]).option("topic", "nothing").load()
except Exception as error:
    print(error)
"""


def test_a_pipeline_over_tls_with_a_password_shows_it_nowhere(
    secure: SecureBroker, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with headwater.open(secure.url("TLS_PLAIN"), **secure.options("TLS_PLAIN")) as log:
        log.create_topic("orders", "id BIGINT, at TIMESTAMP", event_time="at")
        with log.producer("orders") as producer:
            producer.send_batch([{"id": n, "at": 1_000_000 * n} for n in range(100)])
    file = tmp_path_factory.mktemp("private") / "kafka.properties"
    file.write_text(f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username={USER}\n")
    url = f"{secure.url('TLS_PLAIN')}?ssl.ca.location={secure.certificates.ca}&sasl.password=${{env:HUSH}}"
    (tmp_path / "tmp").mkdir()
    environment = {"HEADWATER_KAFKA_CONFIG": str(file), "HUSH": PASSWORD, "TMPDIR": str(tmp_path / "tmp")}
    with open(tmp_path / "out", "wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, url, str(tmp_path / "home"), str(tmp_path / "log")],
            stdout=out, stderr=out, env=os.environ | environment, cwd=tmp_path,
        )  # fmt: skip
        commands = command_lines(child)
    told = (tmp_path / "out").read_text()
    assert child.returncode == 0, told
    assert "rows 50" in told
    assert len(commands) >= 3  # the program, Java, and Spark's Python
    assert not [line for line in commands if any(secret in line for secret in SECRETS)]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and tells(path)]


RUNNING = """
import logging, sys
logging.basicConfig(level=logging.INFO, filename="log")
from headwater import Pipeline, agg, windows

shop = Pipeline("till", log="{url}", home="home")
shop.source("orders", "id BIGINT, at TIMESTAMP", topic="{topic}", event_time="at")

@shop.stream()
def even(orders):
    return orders.where("id % 2 = 0")

@shop.view(key="id")
def seen(orders):
    return orders
"""


@pytest.mark.timeout(400)
def test_a_pipeline_outlives_its_tokens_and_an_absence_of_who_gives_them(
    secure: SecureBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secure.provider, "lifetime", 15)
    options, topic = secure.options("OIDC"), "till-orders"
    (tmp_path / "kafka.properties").write_text(
        "".join(f"{name}={value}\n" for name, value in options.items()).replace(CLIENT_SECRET, "${env:HUSH}")
    )
    (tmp_path / "till.py").write_text(RUNNING.format(url=secure.url("OIDC"), topic=topic))
    environment = {"HEADWATER_KAFKA_CONFIG": "kafka.properties", "HUSH": CLIENT_SECRET}
    with headwater.open(secure.url("OIDC"), **options) as log, open(tmp_path / "out", "wb") as out:
        log.create_topic(topic, "id BIGINT, at TIMESTAMP", event_time="at")
        child = subprocess.Popen(
            [sys.executable, "-m", "headwater", "run", "till.py"],
            stdout=out, stderr=out, env=os.environ | environment, cwd=tmp_path,
        )  # fmt: skip
        try:
            sent = 0
            while sent == 0 or seen(tmp_path) == 0:  # until it runs
                sent = order(log, topic, sent)
            for away in (False, False, True, False):
                before, end = secure.provider.issued, time.monotonic() + 1.5 * secure.provider.lifetime
                secure.provider.away = away
                while time.monotonic() < end:
                    with suppress(LogUnavailable):  # this test has the same trouble
                        sent = order(log, topic, sent)
                assert (secure.provider.issued > before) is not away
            assert until(lambda: seen(tmp_path) == sent, 120), (tmp_path / "out").read_text()
            assert child.poll() is None
        finally:
            secure.provider.away = False
            child.send_signal(signal.SIGINT)
            child.wait(60)
        derived = [row["id"] for batch in log.read("till.even") for row in batch.to_pylist()]
    assert derived == list(range(0, sent, 2))
    found = [path for path in tmp_path.rglob("*") if path.is_file() and tells(path, secure.provider.tokens)]
    assert not found


def order(log: headwater.Log, topic: str, number: int) -> int:
    """Send an order, and return the number of the next."""
    with log.producer(topic, id="till") as producer:
        producer.send({"id": number, "at": 1_000_000 * number}, sequence=number)
    time.sleep(0.5)
    return number + 1


def seen(folder: Path) -> int:
    """Return how many orders the view has."""
    try:
        with headwater.open_views(folder / "home") as views:
            return views.view("seen").count()
    except HeadwaterError:
        return 0


def tells(path: Path, secrets: Iterable[str] = SECRETS) -> bool:
    stored = path.read_bytes()
    return any(secret.encode() in stored for secret in (*SECRETS, *secrets))


def command_lines(child: subprocess.Popen[bytes]) -> set[str]:
    """Return what ``ps`` shows of a program and all that it starts, until it ends."""
    seen: set[str] = set()
    while child.poll() is None:
        seen |= {line for pid in family(child.pid) if (line := command_line(pid))}
        time.sleep(0.2)
    return seen


def family(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
