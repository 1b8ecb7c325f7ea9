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
    metavar="PLACE",
    default="earliest",
    show_default=True,
    help='Where to start reading: a time as "1 day ago", an offset, a position.',
)
@click.option(
    "--pipeline", "file", metavar="FILE", help="Judge what the sources of the topic in FILE declare, too."
)
@click.option(
    "--lateness",
    "given",
    metavar="TIME",
    multiple=True,
    help='Judge this setting, too, as "2 minutes"; may be given again.',
)
@format_option("table", "ndjson", default="table")
@log_option
@verbose_option
def lateness(
    topic: str, since: Start, file: str | None, given: Sequence[str], form: str, url: str | None
) -> None:
    """Show how late the rows of TOPIC come, and which lateness its source needs.

    A row is as late as it is behind the clock when it comes, were the clock kept with no lateness at
    all and every append read by itself, at once. Settings are judged by the rows that they would have
    made late; where appends are read together, fewer are.

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
        found = _read(log, topic, since, pipeline, given)
    if form == "ndjson":
        print_ndjson([found.to_dict()])
    else:
        _print(found)


def _read(
    log: Log, topic: str, since: Start, pipeline: Pipeline | None, given: Sequence[str]
) -> LatenessReport:
    first, last = log.resolve(topic, since).offsets, log.resolve(topic, "latest").offsets
    total = sum(max(0, end - first.get(partition, 0)) for partition, end in last.items())
    with progress(f"reading {topic}", total) as step:
        return headwater.lateness(
            log, topic, since=since, pipeline=pipeline, judged=given, step=lambda rows: step(rows, rows)
        )


def _print(found: LatenessReport) -> None:
    if not found.rows:
        click.echo(f'no row of topic "{found.topic}" has an event time there', err=True)
        return
    click.echo(f"topic {found.topic}: {units.plural(found.rows, 'row')}\n")
    quantiles = [(name, _length(behind)) for name, behind in found.quantiles.items()]
    print_table((">rows", ">behind the clock by at most"), quantiles)
    click.echo()
    rows = [(_text(each), each.late, _percent(each.late, found.rows)) for each in found.settings]
    print_table(("lateness", ">late rows", ">share"), rows)
    click.echo(f"\n{_advice(found)}")
    _tell_others(found)


def _text(setting: LatenessSetting) -> str:
    return f"{setting.text} (declared)" if setting.declared else setting.text


def _advice(found: LatenessReport) -> str:
    setting = found.advice
    if setting is None:
        return f"no lateness that is worth waiting for keeps {ENOUGH:.1%} of rows"
    kept = _percent(found.rows - setting.late, found.rows)
    if not setting.lateness:
        return f"no lateness is needed: without any, {kept} of rows are in time"
    return f'lateness="{setting.text}" keeps {kept} of rows'


def _tell_others(found: LatenessReport) -> None:
    if found.without_time:
        rows = units.plural(found.without_time, "row")
        say("note", f"{rows} without an event time: late with any setting")
    if found.furthest is not None:
        producer, by = found.furthest
        who = f' (producer "{producer}")' if producer else ""
        rows = units.plural(found.ahead, "row")
        say("note", f"{rows} too far ahead to move the clock, by up to {units.length(by)}{who}")


def _length(length: timedelta) -> str:
    return units.length(length) if not length or length >= timedelta(milliseconds=10) else "0.01 s"


def _percent(part: int, whole: int) -> str:
    """Return a share that is never rounded to none or to all of it.

    >>> _percent(0, 9), _percent(1, 1000), _percent(1, 10**6), _percent(10**6 - 1, 10**6)
    ('0%', '0.1%', '<0.01%', '>99.99%')
    """
    if part in (0, whole):
        return "0%" if part == 0 else "100%"
    share = 100 * part / whole
    if not 0.01 <= share <= 99.99:
        return "<0.01%" if share < 1 else ">99.99%"
    return f"{share:.2f}".rstrip("0").rstrip(".") + "%"
