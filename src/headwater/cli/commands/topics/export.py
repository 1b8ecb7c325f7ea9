"""``headwater export``: a topic, or a part of it, as one Parquet file.

Invariant: the file appears whole or not at all; a run that fails leaves what was there before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq

from headwater import Log, Start, durable
from headwater.cli.failure import refused
from headwater.cli.formats import units
from headwater.cli.options import range_options, with_log
from headwater.cli.screens.progress import progress
from headwater.errors import HeadwaterError, UsageError
from headwater.record import read_schema

GROUP_ROWS = 1 << 17
GROUP_BYTES = 64 << 20


@click.command()
@click.argument("topic")
@click.argument("file", metavar="FILE.parquet", type=click.Path(dir_okay=False, path_type=Path))
@range_options
@click.option(
    "--meta", is_flag=True, help="Write partition, offset, times, producer, sequence and headers too."
)
@with_log()
def export(log: Log, topic: str, file: Path, start: Start, end: Start, meta: bool) -> None:
    """Write the records of TOPIC to a Parquet file.

    The file is replaced only when the new one is complete. A time is a time of receipt.

    \b
    Example:
      headwater export orders orders.parquet --from 2026-01-01 --to 2026-02-01
    """
    declared = log.topic(topic)
    _check_name(file, topic)
    first, last = log.resolve(topic, start), log.resolve(topic, end)
    total = sum(max(0, last.offsets[p] - first.offsets.get(p, 0)) for p in last.offsets)
    rows = 0
    with _replacing(file) as unfinished, progress(f"exporting {topic}", total) as step:
        schema = read_schema(declared.schema, declared.compacted, meta)
        with pq.ParquetWriter(unfinished, schema, compression="zstd") as out:
            for table in _row_groups(log.read(topic, None, first, last, meta=meta), schema):
                out.write_table(table)
                rows += len(table)
                step(len(table), len(table))
    click.echo(f"{units.plural(rows, 'row')}, {units.size(file.stat().st_size)} in {file}")


def _check_name(file: Path, topic: str) -> None:
    if file.suffix.lower() == ".parquet":
        return
    hint = f'name it "{file.with_suffix(".parquet").name}"'
    if file.suffix in (".csv", ".ndjson", ".jsonl", ".json"):
        form = "csv" if file.suffix == ".csv" else "ndjson"
        hint = f"`headwater consume {topic} --format {form} > {file}` writes {form.upper()}"
    raise UsageError(f'export writes Parquet, and "{file}" does not end in .parquet', hint=hint)


def _row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Gather small batches, so that a topic written row by row makes a file that reads well."""
    gathered: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        gathered.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield pa.Table.from_batches(gathered, schema)
            gathered, rows, size = [], 0, 0
    if gathered:
        yield pa.Table.from_batches(gathered, schema)


@contextmanager
def _replacing(file: Path) -> Iterator[Path]:
    """Give a place to write to; it becomes ``file`` at the end, and is removed on any failure."""
    if not file.parent.is_dir():
        raise HeadwaterError(f'no directory "{file.parent}"', hint="make it, or export to another directory")
    try:
        with durable.drafting(file) as draft:
            yield draft
            durable.sync(draft)
    except OSError as error:
        reason = refused(error)
        raise HeadwaterError(f'cannot write "{file}"', detail=reason.detail, hint=reason.hint) from None
