"""A producer or a consumer process that may be killed at any moment.

worker.py producer ROOT NAME     numbers its rows; notes what was acknowledged in NAME.acked
worker.py consumer ROOT NAME     notes what it has processed in NAME.seen, then commits
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from headwater.errors import Fenced
from headwater.log.embedded import EmbeddedLog

SEGMENT_BYTES = 200_000


def open_log(root: Path) -> EmbeddedLog:
    return EmbeddedLog(root / "log", segment_bytes=SEGMENT_BYTES)


def row(name: str, n: int) -> dict[str, object]:
    return {"who": name, "n": n, "key": f"{name}-{n % 37}"}


def acknowledged(note: Path) -> int:
    """Return how many rows are known to be stored; a torn last line was never acknowledged."""
    lines = note.read_text().split("\n")[:-1] if note.exists() else []
    return int(lines[-1]) if lines else 0


def produce(root: Path, name: str) -> None:
    note = root / f"{name}.acked"
    done = acknowledged(note)
    chance = random.Random()
    with open_log(root).producer("events", id=name) as producer, open(note, "a") as acked:
        while True:
            size = chance.choice([1, 3, 50, 2000])
            batch = [row(name, n) for n in range(done, done + size)]
            if chance.random() < 0.5:
                producer.send_batch(batch, sequence=done)
            else:
                for n, each in enumerate(batch, done):
                    producer.send(each, sequence=n)
            producer.flush()
            done += size
            acked.write(f"{done}\n")
            acked.flush()


def consume(root: Path, name: str) -> None:
    consumer = open_log(root).consumer("events", "readers", meta=True)
    with open(root / f"{name}.seen", "a") as seen:
        seen.write("\n")  # a predecessor may have been killed within a line
        while True:
            batch = consumer.poll(1)
            if batch is None:
                continue
            ends = zip(
                batch.column("_partition").to_pylist(), batch.column("_offset").to_pylist(), strict=True
            )
            seen.write("".join(f"{partition} {offset}\n" for partition, offset in ends))
            seen.flush()
            try:
                consumer.commit()
            except Fenced:
                continue


if __name__ == "__main__":
    role, root, name = sys.argv[1:]
    {"producer": produce, "consumer": consume}[role](Path(root), name)
