"""``headwater check``: what is wrong is told before Spark starts."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from tests.unit.cli.commands.conftest import SHOP
from tests.unit.cli.conftest import Run

import headwater
from headwater import Pipeline
from headwater.cli.commands.check import check_parts


def test_everything_that_is_wrong_is_told_at_once(run: Run, file: Path) -> None:
    more = "\n@shop.view(key='id')\ndef other(seen):\n    return seen\n"
    file.write_text(SHOP.replace("seen(orders)", "seen(oders)") + more)
    assert run("check", "shop.py").stderr.count("error: ") == 2


def test_parts_that_fit_together_pass_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    shop = Pipeline("shop")
    shop.source("orders", "id BIGINT")
    shop.sql("seen", "SELECT * FROM orders", key="id")
    check_parts(shop)
    assert capsys.readouterr() == ("", "")


def test_parts_that_do_not_fit_end_the_command_with_1() -> None:
    shop = Pipeline("shop")
    shop.sql("seen", "SELECT * FROM orders", key="id")
    with pytest.raises(click.exceptions.Exit) as ended:
        check_parts(shop)
    assert ended.value.exit_code == 1


def test_a_file_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    result = run("check", "nowhere.py")
    assert result.exit_code != 0
    assert "nowhere.py" in result.stderr.splitlines()[0]
    assert list(tmp_path.iterdir()) == []


def test_samples_are_shown_before_spark_starts_and_a_misfit_ends_with_1(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headwater, "check", lambda pipeline, brief: [])
    (tmp_path / "web.py").write_text(
        "from headwater import Pipeline\n"
        f"web = Pipeline('web', log='file:{tmp_path / 'log'}')\n"
        "web.source('events', 'user STRING, at STRING', event_time='to_timestamp(at)')\n"
        "web.source('later', 'n INT')\n"
        "@web.view(key='user')\ndef seen(events):\n    return events\n"
    )
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        log.create_topic("events", "user STRING, at STRING")
        with log.producer("events") as producer:
            producer.send_batch([{"user": "ada", "at": "2026-01-02"}])
    shown = run("check", str(tmp_path / "web.py"), "--sample")
    assert shown.exit_code == 0
    assert "ada" in shown.stdout
    assert "2026-01-02T00:00:00" in shown.stdout
    assert 'topic "later": not there yet' in shown.stdout
    with headwater.open(f"file:{tmp_path / 'log'}") as log, log.producer("events") as producer:
        producer.send({"user": "bob", "at": "some day"})
    misfit = run("check", str(tmp_path / "web.py"), "--sample")
    assert misfit.exit_code == 1
    assert "at is some day" in misfit.stderr
