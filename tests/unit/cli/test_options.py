"""The options that commands share."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from headwater.cli.options import (
    log_argument,
    log_option,
    log_url,
    range_options,
    root_log_option,
    spark_options,
    start,
)
from headwater.errors import UsageError


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("kafka://a:9092?sasl.password=hush", " --log 'kafka://a:9092?…'"),
        ("file:./what?", " --log 'file:./what?'"),
        ("file:./data", " --log file:./data"),
    ],
)
def test_a_log_is_repeated_without_what_may_be_a_password(url: str, said: str) -> None:
    command = click.Command("show", callback=lambda url: click.echo(log_argument()), params=[])
    assert CliRunner().invoke(log_option(command), ["--log", url]).output == f"{said}\n"


@click.group()
@root_log_option
def root(url: str) -> None: ...


@root.command()
@log_option
def show(url: str | None) -> None:
    click.echo(log_url(url))


@pytest.mark.parametrize(
    ("words", "url"),
    [
        (["show"], "file:./data"),
        (["--log", "file:./far", "show"], "file:./far"),
        (["show", "--log", "file:./near"], "file:./near"),
        (["--log", "file:./far", "show", "--log", "file:./near"], "file:./near"),
    ],
)
def test_the_nearer_log_counts(words: list[str], url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWATER_LOG", raising=False)
    assert CliRunner().invoke(root, words).output == f"{url}\n"


def test_a_place_is_read_once_and_what_is_none_is_refused_with_all_that_are() -> None:
    assert (start("earliest"), start("1200")) == ("earliest", 1200)
    assert start(start("1200")) == 1200, "click converts a default again"  # type: ignore[arg-type]
    with pytest.raises(UsageError, match='"soon" is not a position in a topic') as refused:
        start("soon")
    assert "orders:0=12,1=7" in str(refused.value.hint)


def test_a_range_is_everything_unless_it_is_said() -> None:
    command = range_options(click.Command("show", callback=lambda start, end: click.echo(f"{start} {end}")))
    assert CliRunner().invoke(command, []).output == "earliest latest\n"
    assert CliRunner().invoke(command, ["--from", "3", "--to", "7"]).output == "3 7\n"


def test_settings_of_spark_are_read_by_their_first_sign() -> None:
    command = spark_options(click.Command("show", callback=lambda master, settings: click.echo(settings)))
    told = CliRunner().invoke(command, ["--conf", "spark.a=1=2", "--conf", "spark.b="])
    assert told.output == "{'spark.a': '1=2', 'spark.b': ''}\n"
    refused = CliRunner().invoke(command, ["--conf", "a=1"])
    assert isinstance(refused.exception, UsageError)
