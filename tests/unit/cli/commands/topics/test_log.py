"""``headwater log``: the log as a whole."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Run

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


def test_verify_finds_a_topic_whose_declaration_is_missing(run: Run, orders: Log, tmp_path: Path) -> None:
    (tmp_path / "data" / "topics" / "orders" / "topic.json").unlink()
    result = run("log", "verify")
    assert result.exit_code == 1
    assert 'error: topic "orders": declaration of topic "orders" cannot be read' in result.stderr
    assert result.stdout.startswith("checked 0 records (")


def test_verify_of_a_topic_leaves_the_others_out(run: Run, orders: Log) -> None:
    orders.create_topic("clicks", "id BIGINT")
    run("produce", "orders", input='{"id": 1}\n')
    assert run("log", "verify", "clicks").stdout.startswith("checked 0 records in 1 topic (")
    assert run("log", "verify").stdout.startswith("checked 1 record in 2 topics (")
    assert run("log", "verify", "clikcs").exit_code == 1
