"""Where the time of an append goes: each stage of the embedded log alone, on one core."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from bench import events
from headwater import topic
from headwater.log.embedded import appender
from headwater.log.embedded.partition import frame
from headwater.log.record_batch import OutgoingBatch
from headwater.values import keys, rows

REPEAT = 15


def stages(batch: pa.RecordBatch, partitions: int) -> dict[str, float]:
    """Return nanoseconds per row of each stage, the best of several runs."""
    declared = topic.create("t", events.SCHEMA, key=events.KEY, event_time="at", partitions=partitions)
    return {name: value / len(batch) for name, value in _timed(batch, declared).items()}


def _timed(batch: pa.RecordBatch, declared: topic.Topic) -> dict[str, float]:
    records = OutgoingBatch(batch, np.arange(len(batch)), declared, 0)
    where = records.partition
    part = appender.FramePart(batch, records.sequence, 0, "at", 0, "lz4")
    split = [each for _, each in appender._split(part, where)]
    drafts = [each.draft() for each in split]
    plain = sum(_best(lambda each=each: _uncompressed(each.batch)) for each in split)
    encode = sum(_best(each.draft) for each in split)
    return {
        "check against the schema, UTF-8": _best(lambda: rows.from_arrow(batch, declared)),
        "hash keys to partitions": _best(
            lambda: keys.partitions([batch.column("user")], declared.partitions)
        ),
        "sort rows by partition": _best(lambda: list(appender._split(part, where))),
        "Arrow message": plain,
        "LZ4, checksum, sequence numbers": encode - plain,
        "write to the page cache": _best(lambda: _write(drafts)),
    }


def limits(batch: pa.RecordBatch) -> dict[str, str]:
    """Return what the machine allows at best: encoding on every core at once, writing and syncing."""
    part = appender.FramePart(batch, np.arange(len(batch)), 0, "at", 0, "lz4")
    alone, cores = _best(part.draft), os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        together = _best(lambda: [each.result() for each in [pool.submit(part.draft) for _ in range(cores)]])
    packed, plain = (part._replace(compression=how).draft().payload for how in ("lz4", "none"))
    speed = _disk(packed)
    return {
        f"encoding on all {cores} cores against one": f"{cores * alone / together:.2f}×",
        "encoding alone, all cores": f"{len(batch) * cores / together * 1e3:.1f} M rows/s",
        "write and sync": f"{speed / 1e6:.0f} MB/s",
        "write and sync, LZ4": f"{speed / packed.size * len(batch) / 1e6:.1f} M rows/s",
        "write and sync, uncompressed": f"{speed / plain.size * len(batch) / 1e6:.1f} M rows/s",
    }


def _disk(payload: pa.Buffer) -> float:
    """Return the bytes a second that reach the disk."""
    copies = max(1, (64 << 20) // payload.size)
    with tempfile.TemporaryFile() as file:
        start = time.perf_counter()
        for number in range(copies):
            os.pwrite(file.fileno(), payload, number * payload.size)
        os.fdatasync(file.fileno())
        return float(copies * payload.size / (time.perf_counter() - start))


def _uncompressed(batch: pa.RecordBatch) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _write(drafts: list[frame.Draft]) -> None:
    with tempfile.TemporaryFile() as file:
        os.pwritev(file.fileno(), [draft.payload for draft in drafts], 0)


def _best(work: Callable[[], Any]) -> float:
    taken = []
    for _ in range(REPEAT):
        start = time.perf_counter_ns()
        work()
        taken.append(time.perf_counter_ns() - start)
    return float(min(taken))
