from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Run
from tests.unit.cli.contents import rows

from headwater import Log


def test_verify_of_a_sound_log_says_that_all_is_well(run: Run, orders: Log) -> None:
    run("produce", "orders", input='{"id": 1}\n{"id": 2}\n')
    result = run("log", "verify")
    assert result.exit_code == 0
    assert result.stdout.startswith("checked 2 records in 1 topic (1 batch, ")
    assert result.stdout.endswith(": all is well\n")


def test_verify_finds_a_damaged_byte_and_exits_with_1(run: Run, orders: Log, tmp_path: Path) -> None:
    for number in range(3):
        run("produce", "orders", input=f'{{"id": {number}, "item": "some text"}}\n')
    [segment] = [
        path for path in (tmp_path / "data").rglob("*") if path.suffix in (".log", ".seg", ".segment")
    ]
    damaged = bytearray(segment.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    segment.write_bytes(damaged)
    result = run("log", "verify", "orders")
    assert result.exit_code == 1
    assert result.stderr.startswith('error: topic "orders", partition 0: ')
    assert "problem" in result.stdout


def test_compact_keeps_the_newest_of_each_key_and_tells_the_sizes(run: Run, log: Log) -> None:
    log.create_topic("customers", "id BIGINT, name STRING", key="id", cleanup="compact")
    for name in ("Ann", "Bo", "Cy"):
        run("produce", "customers", input=f'{{"id": 1, "name": "{name}"}}\n')
    result = run("compact", "customers")
    assert result.exit_code == 0
    assert result.stdout.startswith('topic "customers": ')
    assert rows(log, "customers", "name")[-1] == "Cy"


def test_compact_tells_why_a_topic_has_grown(run: Run, log: Log) -> None:
    log.create_topic("customers", "id BIGINT, name STRING", key="id", cleanup="compact")
    run("produce", "customers", input='{"id": 1, "name": "Ann"}\n')
    result = run("compact", "customers")
    assert result.stderr.startswith("note: few records could go")


def test_seek_notes_a_group_that_is_new(run: Run, orders: Log) -> None:
    assert run("seek", "billing", "orders", "--to", "earliest").stderr == 'note: group "billing" is new\n'
    assert run("seek", "billing", "orders", "--to", "earliest").stderr == ""
    result = run("seek", "biling", "orders", "--to", "earliest")
    assert result.stderr == 'note: group "biling" is new; did you mean "billing"?\n'
    assert result.stdout == "orders:0=0\n"


def test_verify_finds_a_topic_whose_declaration_is_missing(run: Run, orders: Log, tmp_path: Path) -> None:
    (tmp_path / "data" / "topics" / "orders" / "topic.json").unlink()
    result = run("log", "verify")
    assert result.exit_code == 1
    assert 'error: topic "orders": declaration of topic "orders" cannot be read' in result.stderr
    assert result.stdout.startswith("checked 0 records (")
