"""``headwater import``: append the rows of a Parquet file."""

from __future__ import annotations

from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq

from headwater import Log
from headwater.cli.append import Appending, BadRow, appending
from headwater.cli.formats import units
from headwater.cli.options import with_log
from headwater.cli.screens.progress import progress
from headwater.errors import HeadwaterError, RowError

BATCH_ROWS = 1 << 16
BATCH_BYTES = 32 << 20


@click.command("import")
@click.argument("topic")
@click.argument("file", metavar="FILE.parquet", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--producer", metavar="ID", help="Name the file, so that importing it again adds nothing twice."
)
@with_log()
def import_(log: Log, topic: str, file: Path, producer: str | None) -> None:
    """Append the rows of a Parquet file to TOPIC.

    Columns are matched by name; those the file lacks become null. The metadata columns that
    `export --meta` writes are left out, except that a deleted key is deleted here too. With
    --producer, a run that was interrupted is finished by running it again.

    \b
    Example:
      headwater import orders orders.parquet --producer orders-2026-01
    """
    declared = log.topic(topic)
    with _opened(file) as parquet, appending(log, declared, producer) as rows:
        _append(rows, parquet, file)


def _opened(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except pa.ArrowInvalid as error:
        raise HeadwaterError(f'"{file}" is not a Parquet file', detail=str(error).splitlines()[0]) from None


def _append(rows: Appending, parquet: pq.ParquetFile, file: Path) -> None:
    with progress(f"importing {file.name}", parquet.metadata.num_rows) as step:
        try:
            for batch in parquet.iter_batches(_batch_rows(parquet)):
                rows.add(batch)
                step(len(batch), len(batch))
        except BadRow as bad:
            raise _stopped(file, bad) from None


def _batch_rows(parquet: pq.ParquetFile) -> int:
    """Return how many rows to take at once: fewer where they are large."""
    file = parquet.metadata
    size: int = sum(file.row_group(index).total_byte_size for index in range(file.num_row_groups))
    rows: int = BATCH_BYTES * file.num_rows // max(size, 1)
    return max(1, min(BATCH_ROWS, rows))


def _stopped(file: Path, bad: BadRow) -> RowError:
    reason = bad.reason
    appended = f"the {units.plural(bad.number - 1, 'row')} before it are appended" if bad.number > 1 else ""
    parts = [part for part in (reason.reason, appended) if part]
    return RowError(
        f"{file}, row {bad.number}: {reason.message}", detail="; ".join(parts) or None, hint=reason.hint
    )
