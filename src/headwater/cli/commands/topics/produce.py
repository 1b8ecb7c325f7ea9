"""``headwater produce``: append lines of JSON or CSV, from a file or as they come from a pipe."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import click
import pyarrow as pa

from headwater import Log, Topic
from headwater.cli.append import Appending, BadRow, appending
from headwater.cli.formats.csv_rows import CsvRows
from headwater.cli.formats.lines import BadLine, RecordBlock, chunks
from headwater.cli.options import format_option, log_argument, with_log
from headwater.cli.screens.progress import progress
from headwater.errors import HeadwaterError, RowError
from headwater.values import jsonl

Decode = Callable[[list[bytes]], tuple[pa.RecordBatch, list[tuple[int, RowError]]]]


@click.command()
@click.argument("topic")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@format_option(
    "ndjson", "csv", default=None, help="The format of the input.  [default: by the file's name, else ndjson]"
)
@click.option("--producer", metavar="ID", help="Name the input, so that running it again adds nothing twice.")
@with_log()
def produce(log: Log, topic: str, file: str | None, form: str | None, producer: str | None) -> None:
    """Append lines to TOPIC, from FILE or standard input.

    NDJSON has one JSON object per line; CSV has a header row with column names. Lines from a pipe are
    appended as they come. A line that does not fit stops the command: the lines before it stay
    appended, and the error says how to go on.

    With --producer, the number of a row is its sequence number in the log. After a crash, run the
    same command again: rows that the log has already are not added twice. Use one ID for one input
    and a new ID for the next; a second run with the same ID takes over from the first.

    \b
    Examples:
      headwater produce orders orders.ndjson --producer import-2026-01
      tail -f app.log | headwater produce events
    """
    declared = log.topic(topic)
    form = form or ("csv" if file and file.endswith(".csv") else "ndjson")
    with _input(file) as stream, appending(log, declared, producer) as rows:
        _append(rows, stream, form, _advice(topic, file, form, producer))


@contextmanager
def _input(file: str | None) -> Iterator[BinaryIO]:
    if file and file != "-":
        with open(file, "rb", buffering=0) as stream:
            yield stream
    else:
        if sys.stdin.isatty():
            click.echo("reading lines from the terminal; Ctrl-D ends", err=True)
        yield sys.stdin.buffer


def _append(rows: Appending, stream: BinaryIO, form: str, advice: Callable[[int], str]) -> None:
    name = getattr(stream, "name", None)
    path = Path(name) if isinstance(name, str) and Path(name).is_file() else None
    source = str(path) if path else "standard input"
    total = path.stat().st_size if path else None
    try:
        with progress(rows.topic.name, total, shown=not sys.stdin.isatty() or path is not None) as step:
            for chunk, decode in _decoded(stream, form, rows.topic):
                _append_chunk(rows, chunk, decode)
                step(chunk.size, len(chunk.values))
    except BadLine as bad:
        raise _stopped(source, bad, rows.done, advice(bad.line)) from None


def _decoded(stream: BinaryIO, form: str, topic: Topic) -> Iterator[tuple[RecordBlock, Decode]]:
    """Yield each chunk with what decodes it; a CSV file's first record is its header."""
    if form == "ndjson":
        lines = replace(topic, schemas=(topic.read_schema,))  # with `_deleted`, if it is compacted
        for chunk in chunks(stream):
            yield chunk, lambda values: jsonl.decode(values, lines, strict=True)
        return
    rows: CsvRows | None = None
    for chunk in chunks(stream, quoted=True):
        if rows is None and chunk.values:
            rows = CsvRows(chunk.values[0], topic)
            chunk = RecordBlock(chunk.values[1:], chunk.lines[1:], chunk.size)
        if rows is not None:
            yield chunk, rows.decode


def _append_chunk(rows: Appending, chunk: RecordBlock, decode: Decode) -> None:
    if not chunk.values:
        return
    first = rows.done + 1
    batch, bad = decode(chunk.values)
    try:
        rows.add(batch.slice(0, bad[0][0]) if bad else batch)
    except BadRow as error:
        raise BadLine(chunk.lines[error.number - first], error.reason) from None
    if bad:
        raise BadLine(chunk.lines[bad[0][0]], bad[0][1])


def _advice(topic: str, file: str | None, form: str, producer: str | None) -> Callable[[int], str]:
    """Return what says how to go on after a bad line."""
    if producer:
        return lambda line: f"correct line {line} and run the same command again: nothing is added twice"
    source = shlex.quote(file) if file and file != "-" else "INPUT"
    header = f"head -n 1 {source}; " if form == "csv" else ""
    onward = f"headwater produce {topic} --format {form}{log_argument()}"
    return lambda line: (
        f"correct line {line}, then go on with `({header}tail -n +{line} {source}) | {onward}`"
    )


def _stopped(source: str, bad: BadLine, done: int, advice: str) -> HeadwaterError:
    """Return the error that names the line."""
    reason = bad.reason
    before = "the rows before it are appended, this one and those after it are not"
    appended = before if done else "nothing is appended"
    why = f"{reason.reason}; {appended}" if reason.reason else appended
    hint = f"{reason.hint}\n{advice}" if reason.hint else advice  # each becomes a line of its own
    return RowError(f"{source}, line {bad.line}: {reason.message}", detail=why, hint=hint)
