"""``headwater topic``: create, list, describe, alter, adopt and delete topics."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from headwater import Log, PartitionInfo, TopicInfo
from headwater.cli.formats import units
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, with_log
from headwater.errors import UsageError
from headwater.schema import type_name

F = TypeVar("F", bound=Callable[..., Any])
_REMOVABLE = ("retention", "retention_bytes", "archive")


def _settings(command: F) -> F:
    """Add the options of what may also be altered later."""
    for option in (
        click.option(
            "--archive",
            metavar="DIR",
            help="Move old records to this directory as Parquet instead of dropping them.",
        ),
        click.option(
            "--cleanup",
            type=click.Choice(["delete", "compact"]),
            help="delete: drop old records (default). compact: keep the newest record of each key.",
        ),
        click.option(
            "--retention-bytes",
            metavar="SIZE",
            help='Size of a partition over which its oldest records are dropped: 1000000 or "1 GB".',
        ),
        click.option(
            "--retention", metavar="TIME", help='Age at which records are dropped, such as "7 days".'
        ),
        click.option(
            "--partitions",
            type=int,
            metavar="N",
            help="The number of partitions, which are read and written in parallel.",
        ),
    ):
        command = option(command)
    return command


@click.group()
def topic() -> None:
    """Create, list, describe, alter, adopt and delete topics."""


def _columns(command: F) -> F:
    """Add the options that say what a topic's records are."""
    for option in (
        click.option(
            "--event-time", metavar="COL", help="TIMESTAMP column with the time at which a record happened."
        ),
        click.option("--key", metavar="COLS", help="Key column(s), separated by commas."),
        click.option(
            "--schema", metavar="DDL", required=True, help='Columns as Spark DDL, or "JSON" for any value.'
        ),
    ):
        command = option(command)
    return command


@topic.command()
@click.argument("name")
@_columns
@_settings
@with_log(make=True)
def create(log: Log, name: str, **settings: Any) -> None:
    """Create topic NAME, and the log if there is none.

    Records of one key go to one partition and keep their order.

    \b
    Example:
      headwater topic create orders --key id --event-time at --retention "7 days" \\
          --schema "id BIGINT, item STRING, price DECIMAL(10,2), at TIMESTAMP"
    """
    created = log.create_topic(name, **_explicit(settings))
    click.echo(f'created topic "{created.name}" with {units.plural(created.partitions, "partition")}')


@topic.command()
@click.argument("name")
@_columns
@click.option(
    "--format",
    metavar="FORMAT",
    help="How values are written: json (default), avro, protobuf, json_schema, csv, text, bytes, or "
    "avro:FILE.avsc without a schema registry.",
)
@click.option(
    "--key-format",
    metavar="FORMAT",
    help="How keys are written, the same; their columns are then read from the key.",
)
@with_log()
def adopt(log: Log, name: str, **settings: Any) -> None:
    """Declare topic NAME, which another program has made on a Kafka broker.

    From then on it is read with these columns, and rows can be appended to it, as JSON or as Avro. No setting
    and no record of the topic is changed.

    \b
    Example:
      headwater topic adopt clicks --event-time at --schema "user STRING, url STRING, at TIMESTAMP"
    """
    adopted = log.adopt_topic(name, **_explicit(settings))
    click.echo(f'adopted topic "{adopted.name}" with {units.plural(adopted.partitions, "partition")}')


@topic.command()
@click.argument("name")
@with_log()
def disown(log: Log, name: str) -> None:
    """Take back the declaration of topic NAME, which another program has made; its records stay.

    \b
    Example:
      headwater topic disown clicks
    """
    log.disown_topic(name)
    click.echo(f'disowned topic "{name}"')


@topic.command("list")
@format_option("table", "ndjson", default="table")
@with_log()
def list_(log: Log, form: str) -> None:
    """List all topics with their sizes.

    \b
    Example:
      headwater topic list
    """
    topics = [log.describe(each.name) for each in log.topics()]
    if form == "ndjson":
        print_ndjson(_totals(each) for each in topics)
    elif topics:
        columns = ("topic", ">partitions", ">records", ">size", ">records/s", "key", "cleanup")
        print_table(columns, map(_row, topics))
    else:
        click.echo("no topics yet; `headwater topic create --help` shows how to create one", err=True)


@topic.command()
@click.argument("name")
@format_option("table", "ndjson", default="table")
@with_log()
def describe(log: Log, name: str, form: str) -> None:
    """Show the schema, settings, sizes and rate of topic NAME.

    Of a topic that another program has made, and nobody has declared, it looks at the newest records, and
    shows a declaration to paste into a pipeline: a guess, to be corrected.

    \b
    Example:
      headwater topic describe orders
    """
    info, guess = log.describe(name), log.guess_declaration(name)
    if form == "ndjson":
        print_ndjson([_facts(info) | ({} if guess is None else {"guess": guess.to_dict()})])
        return
    _print_description(info)
    if guess is not None:
        looked = units.plural(guess.records, "record")
        click.echo(f"\nnobody has declared it; by its newest {looked}, a pipeline would read it as\n")
        click.echo(f"  {guess.line}")
        for note in guess.notes:
            click.echo(f"\nnote: {note}")


@topic.command()
@click.argument("name")
@click.option(
    "--schema", metavar="DDL", help="The whole new schema: the old columns, then new nullable ones."
)
@_settings
@with_log()
def alter(log: Log, name: str, **settings: Any) -> None:
    """Add columns to topic NAME, or change its settings.

    A schema may gain nullable columns at its end; old records then read with nulls. Partitions may be
    added, not removed. "none" for --retention, --retention-bytes or --archive removes the setting.

    \b
    Example:
      headwater topic alter orders --retention "30 days"
    """
    changes = _explicit(settings)
    if not changes:
        raise UsageError(
            "nothing to change", hint="see `headwater topic alter --help` for what can be changed"
        )
    log.alter_topic(name, **changes)
    click.echo(f'altered topic "{name}"')


@topic.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_log()
def delete(log: Log, name: str, yes: bool) -> None:
    """Delete topic NAME with all its records.

    The offsets that groups have committed for it are deleted too.

    \b
    Example:
      headwater topic delete orders --yes
    """
    info = log.describe(name)
    if not yes:
        _confirm(info)
    log.delete_topic(name)
    click.echo(f'deleted topic "{name}"')


def _confirm(info: TopicInfo) -> None:
    """Ask; anything but a yes ends the command, also an input that cannot answer."""
    held = f"{units.plural(info.records, 'record')}, {units.size(info.size)}"
    try:
        agreed = click.confirm(f'Delete topic "{info.topic.name}" ({held})?', err=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            raise UsageError("nobody answered, so nothing is deleted", hint="give --yes to delete") from None
        raise
    if not agreed:
        click.echo("nothing deleted", err=True)
        raise click.exceptions.Exit(1)


def _explicit(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that were given; "none" removes a setting."""
    explicit = {name: value for name, value in settings.items() if value is not None}
    for name in ("key", "archive", "event_time"):
        if name in explicit and not explicit[name].strip(" ,"):
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} is empty", hint=f"leave {option} out where there is none")
    explicit = {
        name: None if value == "none" and name in _REMOVABLE else value for name, value in explicit.items()
    }
    if explicit.get("retention_bytes") is not None:
        explicit["retention_bytes"] = units.parse_size(explicit["retention_bytes"])
    if explicit.get("retention") is not None:
        _check_interval(explicit["retention"])
    return explicit


def _check_interval(text: str) -> None:
    """Refuse ``7d``, which many tools take, with what to write here."""
    short = re.fullmatch(r"\s*(\d+)\s*([smhdw])\s*", text)
    if short:
        unit = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}[short[2]]
        raise UsageError(
            f'invalid interval "{text}"', hint=f'did you mean "{units.plural(int(short[1]), unit)}"?'
        )


def _size(count: int | None) -> str | None:
    """Return a size for a table's cell, where the backend tells it."""
    return None if count is None else units.size(count)


def _row(info: TopicInfo) -> tuple[object, ...]:
    topic = info.topic
    rate, key = f"{info.rate:,.1f}", ", ".join(topic.key) or None
    return topic.name, topic.partitions, info.records, _size(info.size), rate, key, topic.cleanup


def _totals(info: TopicInfo) -> dict[str, Any]:
    topic = info.topic
    totals = {"records": info.records, "bytes": info.size, "rate": info.rate}
    return {"topic": topic.name, **topic.settings(), **totals}


def _facts(info: TopicInfo) -> dict[str, Any]:
    return {**_totals(info), "partitions": [_partition_facts(part) for part in info.partitions]}


def _partition_facts(part: PartitionInfo) -> dict[str, Any]:
    return {
        "partition": part.partition,
        "earliest": part.earliest,
        "end": part.end,
        "bytes": part.size,
        "segments": part.segments,
        "oldest": part.oldest and part.oldest.isoformat(),
        "newest": part.newest and part.newest.isoformat(),
    }


def _print_description(info: TopicInfo) -> None:
    topic = info.topic
    total = f"{units.plural(info.records, 'record')}, {units.size(info.size)}, {info.rate:,.1f} records/s"
    click.echo(f"topic {topic.name}: {total}\n")
    print_table(("column", "type", ""), [(f.name, type_name(f), _role(info, f)) for f in topic.schema])
    click.echo()
    settings = {k: v for k, v in topic.settings().items() if k not in ("schema", "key", "event_time") and v}
    print_table(("setting", "value"), [(k.replace("_", "-"), v) for k, v in settings.items()])
    click.echo()
    columns = (">partition", ">earliest", ">end", ">size", ">segments", "oldest", "newest")
    print_table(columns, map(_partition_row, info.partitions))


def _role(info: TopicInfo, field: Any) -> str:
    topic = info.topic
    roles = ["key"] * (field.name in topic.key) + ["event time"] * (field.name == topic.event_time)
    return ", ".join(roles + ["not null"] * (not field.nullable))


def _partition_row(part: PartitionInfo) -> tuple[object, ...]:
    size, oldest, newest = _size(part.size), units.moment(part.oldest), units.moment(part.newest)
    return part.partition, part.earliest, part.end, size, part.segments, oldest, newest
