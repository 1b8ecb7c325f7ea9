"""``headwater lateness``: how late the rows of a topic come, and what to do about it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import click

import headwater
from headwater.cli import log_location
from headwater.cli.failure import say
from headwater.cli.formats import units
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, log_option, log_url, start, verbose_option
from headwater.cli.screens.progress import Step, progress
from headwater.durations import MICROSECOND, interval_text
from headwater.engine.figures.lateness import DEFAULT, LADDER, Profile, profile
from headwater.log import Log, Start
from headwater.pipeline.declaration import Source
from headwater.pipeline.loading import load
from headwater.pipeline.pipeline import Pipeline
from headwater.pipeline.settings import length_or_zero

QUANTILES = {"50%": 0.5, "90%": 0.9, "99%": 0.99, "99.9%": 0.999, "all": 1.0}
ENOUGH = 0.999
"""The share of rows that the advised setting keeps."""


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
    pipeline = load(file) if file is not None else None
    sources = _sources(pipeline, topic)
    declared = {each.timing.lateness for each in sources}
    judged = {*LADDER, *declared, *map(length_or_zero, given)}
    named = url or (pipeline.log if pipeline is not None else log_url(None))
    log_location.check(named, make=False)
    with headwater.open(named) as log:
        found = _read(log, topic, since, judged, sources)
    if form == "ndjson":
        print_ndjson([_facts(found, judged, declared)])
    else:
        _print(found, judged, declared)


def _sources(pipeline: Pipeline | None, topic: str) -> list[Source]:
    """Return those who declare how the time of a topic is told."""
    if pipeline is None:
        return []
    found = [each for each in pipeline.sources if each.topic == topic and each.event_time is not None]
    if not found:
        say("note", f'pipeline "{pipeline.name}" has no source of topic "{topic}" with an event time')
    return found


def _read(log: Log, topic: str, since: Start, judged: set[timedelta], sources: list[Source]) -> Profile:
    timing = DEFAULT
    for each in sources[:1]:
        if each.timing.idle is not None:
            timing = replace(timing, idle=each.timing.idle // MICROSECOND)
        if each.timing.max_ahead is not None:
            timing = replace(timing, max_ahead=each.timing.max_ahead // MICROSECOND)
    first, last = log.resolve(topic, since).offsets, log.resolve(topic, "latest").offsets
    total = sum(max(0, end - first.get(partition, 0)) for partition, end in last.items())
    with progress(f"reading {topic}", total) as step:
        done = partial(_both, step)
        return profile(log, topic, start=since, judged=judged, timing=timing, step=done)


def _both(step: Step, rows: int) -> None:
    step(rows, rows)


def _print(found: Profile, judged: set[timedelta], declared: set[timedelta]) -> None:
    if not found.rows:
        click.echo(f'no row of topic "{found.topic}" has an event time there', err=True)
        return
    click.echo(f"topic {found.topic}: {units.plural(found.rows, 'row')}\n")
    quantiles = [(name, _length(found.delays.quantile(share))) for name, share in QUANTILES.items()]
    print_table((">rows", ">behind the clock by at most"), quantiles)
    click.echo()
    rows = [(_text(each, declared), found.late(each), _share(found, each)) for each in sorted(judged)]
    print_table(("lateness", ">late rows", ">share"), rows)
    click.echo(f"\n{_advice(found)}")
    _tell_others(found)


def _share(found: Profile, setting: timedelta) -> str:
    return _percent(found.late(setting), found.rows)


def _text(setting: timedelta, declared: Container[timedelta] = ()) -> str:
    text = interval_text(setting) if setting else "0 seconds"
    return f"{text} (declared)" if setting in declared else text


def _advice(found: Profile) -> str:
    setting = found.advice(ENOUGH)
    if setting is None:
        return f"no lateness that is worth waiting for keeps {ENOUGH:.1%} of rows"
    kept = _percent(found.rows - found.late(setting), found.rows)
    if not setting:
        return f"no lateness is needed: without any, {kept} of rows are in time"
    return f'lateness="{_text(setting)}" keeps {kept} of rows'


def _tell_others(found: Profile) -> None:
    if found.timeless:
        say("note", f"{units.plural(found.timeless, 'row')} without an event time: late with any setting")
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


def _facts(found: Profile, judged: set[timedelta], declared: set[timedelta]) -> dict[str, Any]:
    setting = found.advice(ENOUGH)
    return {
        "topic": found.topic,
        "rows": found.rows,
        "quantiles": {
            name: found.delays.quantile(share).total_seconds() for name, share in QUANTILES.items()
        },
        "settings": [
            {"lateness": _text(each), "late": found.late(each), "declared": each in declared}
            for each in sorted(judged)
        ],
        "advice": None if setting is None else _text(setting),
        "without_time": found.timeless,
        "ahead": found.ahead,
    }
