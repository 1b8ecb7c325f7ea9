"""``headwater lateness``: how late the rows of a topic come, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import click

import headwater
from headwater import LatenessReport, LatenessSetting, Log, Pipeline, Start
from headwater.api.lateness import ENOUGH, timed_sources
from headwater.cli import log_location
from headwater.cli.failure import say
from headwater.cli.formats import units
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, log_option, log_url, start, verbose_option
from headwater.cli.screens.progress import progress


@click.command()
@click.argument("topic")
@click.option(
    "--since",
    type=start,
    metavar="POSITION",
    default="earliest",
    show_default=True,
    help='Where to start reading: an offset, or a time such as "1 day ago".',
)
@click.option(
    "--pipeline", "file", metavar="FILE", help="Also judge what the sources of the topic in FILE declare."
)
@click.option(
    "--lateness",
    "judged",
    metavar="TIME",
    multiple=True,
    help='Also judge this setting, such as "2 minutes"; may be repeated.',
)
@format_option("table", "ndjson", default="table")
@log_option
@verbose_option
def lateness(
    topic: str, since: Start, file: str | None, judged: Sequence[str], form: str, url: str | None
) -> None:
    """Show how late the rows of TOPIC are, and advise a lateness.

    A row is late by as much as it is behind the watermark when it comes. For this the watermark is kept
    without any lateness, and every append is read at once. A setting is judged by how many rows it would
    have made late; where several appends are read together, fewer rows are late.

    \b
    Examples:
      headwater lateness orders
      headwater lateness orders --since "1 day ago" --pipeline shop.py
    """
    pipeline = headwater.load(file) if file is not None else None
    if pipeline is not None and not timed_sources(pipeline, topic):
        say("note", f'pipeline "{pipeline.name}" has no source of topic "{topic}" with an event time')
    named = url or (pipeline.log if pipeline is not None else log_url(None))
    log_location.check(named, make=False)
    with headwater.open(named) as log:
        report = _read(log, topic, since, pipeline, judged)
    if form == "ndjson":
        print_ndjson([report.to_dict()])
    else:
        _print(report)


def _read(
    log: Log, topic: str, since: Start, pipeline: Pipeline | None, judged: Sequence[str]
) -> LatenessReport:
    first, last = log.resolve(topic, since).offsets, log.resolve(topic, "latest").offsets
    total = sum(max(0, end - first.get(partition, 0)) for partition, end in last.items())
    with progress(f"reading {topic}", total) as step:
        return headwater.lateness(
            log, topic, since=since, pipeline=pipeline, judged=judged, step=lambda rows: step(rows, rows)
        )


def _print(report: LatenessReport) -> None:
    if not report.rows:
        click.echo(f'no row of topic "{report.topic}" has an event time there', err=True)
        return
    click.echo(f"topic {report.topic}: {units.plural(report.rows, 'row')}\n")
    quantiles = [(name, _length(behind)) for name, behind in report.quantiles.items()]
    print_table((">rows", ">behind the clock by at most"), quantiles)
    click.echo()
    rows = [(_text(each), each.late, _percent(each.late, report.rows)) for each in report.settings]
    print_table(("lateness", ">late rows", ">share"), rows)
    click.echo(f"\n{_advice(report)}")
    _tell_exceptions(report)


def _text(setting: LatenessSetting) -> str:
    return f"{setting.text} (declared)" if setting.declared else setting.text


def _advice(report: LatenessReport) -> str:
    setting = report.advice
    if setting is None:
        return f"no lateness that is worth waiting for keeps {ENOUGH:.1%} of rows"
    in_time = _percent(report.rows - setting.late, report.rows)
    if not setting.lateness:
        return f"no lateness is needed: without any, {in_time} of rows are in time"
    return f'lateness="{setting.text}" keeps {in_time} of rows'


def _tell_exceptions(report: LatenessReport) -> None:
    if report.without_time:
        rows = units.plural(report.without_time, "row")
        say("note", f"{rows} without an event time: late with any setting")
    if report.furthest is not None:
        producer, by = report.furthest
        who = f' (producer "{producer}")' if producer else ""
        rows = units.plural(report.ahead, "row")
        say("note", f"{rows} too far ahead to move the clock, by up to {units.length(by)}{who}")


def _length(length: timedelta) -> str:
    return units.length(length) if not length or length >= timedelta(milliseconds=10) else "0.01 s"


def _percent(part: int, total: int) -> str:
    """Return a share that is never rounded to none or to all of it.

    >>> _percent(0, 9), _percent(1, 1000), _percent(1, 10**6), _percent(10**6 - 1, 10**6)
    ('0%', '0.1%', '<0.01%', '>99.99%')
    """
    if part in (0, total):
        return "0%" if part == 0 else "100%"
    share = 100 * part / total
    if not 0.01 <= share <= 99.99:
        return "<0.01%" if share < 1 else ">99.99%"
    return f"{share:.2f}".rstrip("0").rstrip(".") + "%"
