from __future__ import annotations

import json

import pytest
from tests.unit.cli.conftest import Run

from headwater import Log


def test_create_makes_the_log_and_the_topic_with_its_settings(run: Run, log: Log) -> None:
    result = run(
        "topic", "create", "orders", "--schema", "id BIGINT, at TIMESTAMP", "--key", "id",
        "--event-time", "at", "--partitions", 3, "--retention", "7 days", "--retention-bytes", 1000000,
        "--cleanup", "delete",
    )  # fmt: skip
    assert result.stdout == 'created topic "orders" with 3 partitions\n'
    settings = log.topic("orders").settings()
    assert settings["key"] == ["id"]
    assert settings["event_time"] == "at"
    assert settings["retention"] == "7 days"
    assert settings["retention_bytes"] == 1000000


def test_create_refuses_a_bad_schema_with_a_hint(run: Run) -> None:
    result = run("topic", "create", "orders", "--schema", "id BIGNIT")
    assert result.exit_code == 1
    assert 'hint: did you mean "BIGINT"?' in result.stderr


def test_create_refuses_an_empty_schema(run: Run) -> None:
    result = run("topic", "create", "orders", "--schema", "")
    assert result.exit_code == 1
    assert result.stderr.startswith('error: invalid schema ""\n')


@pytest.mark.parametrize("option", ["--key", "--event-time", "--archive"])
def test_create_refuses_an_option_that_is_empty(run: Run, option: str) -> None:
    result = run("topic", "create", "orders", "--schema", "id INT", option, "")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (2, f"error: {option} is empty")


@pytest.mark.parametrize(
    ("text", "size"), [("1000000", 10**6), ("1 GB", 10**9), ("1.5kb", 1500), ("64 MiB", 64 << 20)]
)
def test_a_size_may_have_a_unit(run: Run, log: Log, text: str, size: int) -> None:
    run("topic", "create", "orders", "--schema", "id INT", "--retention-bytes", text)
    assert log.topic("orders").retention_bytes == size


def test_a_size_that_is_none_is_refused_with_an_example(run: Run) -> None:
    result = run("topic", "create", "orders", "--schema", "id INT", "--retention-bytes", "1 XB")
    assert result.exit_code == 2
    assert '"1 GB"' in result.stderr


def test_a_short_interval_is_refused_with_the_long_one(run: Run) -> None:
    result = run("topic", "create", "orders", "--schema", "id INT", "--retention", "7d")
    assert result.stderr == 'error: invalid interval "7d"\nhint: did you mean "7 days"?\n'


def test_a_size_the_backend_does_not_tell_is_a_dash(
    run: Run, orders: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.log.TopicInfo.size", None)
    assert run("topic", "list").stdout.splitlines()[2].split()[:4] == ["orders", "1", "0", "-"]


def test_list_shows_each_topic_with_its_size(run: Run, orders: Log) -> None:
    run("produce", "orders", input='{"id": 1}\n{"id": 2}\n')
    lines = run("topic", "list").stdout.splitlines()
    assert lines[0].split()[:3] == ["topic", "partitions", "records"]
    assert lines[2].split()[:3] == ["orders", "1", "2"]


def test_list_of_an_empty_log_says_so_on_stderr(run: Run, orders: Log) -> None:
    orders.delete_topic("orders")
    result = run("topic", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no topics yet" in result.stderr


def test_list_as_ndjson_is_one_object_per_topic(run: Run, orders: Log) -> None:
    [line] = run("topic", "list", "--format", "ndjson").stdout.splitlines()
    topic = json.loads(line)
    assert topic["topic"] == "orders"
    assert topic["records"] == 0
    assert topic["key"] == ["id"]


def test_describe_shows_columns_with_their_roles_and_each_partition(run: Run, orders: Log) -> None:
    run("produce", "orders", input='{"id": 1}\n')
    text = run("topic", "describe", "orders").stdout
    words = [line.split() for line in text.splitlines()]
    assert ["id", "BIGINT", "key,", "not", "null"] in words
    assert ["at", "TIMESTAMP", "event", "time"] in words
    assert any(line[:3] == ["0", "0", "1"] for line in words)


def test_describe_as_ndjson_lists_the_partitions(run: Run, orders: Log) -> None:
    described = json.loads(run("topic", "describe", "orders", "--format", "ndjson").stdout)
    assert described["schema"].startswith("id BIGINT NOT NULL")
    [partition] = described["partitions"]
    assert (partition["earliest"], partition["end"], partition["oldest"]) == (0, 0, None)


def test_alter_adds_a_column_and_none_takes_a_setting_away(run: Run, orders: Log) -> None:
    ddl = "id BIGINT NOT NULL, item STRING, at TIMESTAMP, note STRING"
    assert run("topic", "alter", "orders", "--schema", ddl, "--retention", "1 day").exit_code == 0
    assert orders.topic("orders").settings()["retention"] == "1 day"
    assert orders.topic("orders").schema.names[-1] == "note"
    assert run("topic", "alter", "orders", "--retention", "none").exit_code == 0
    assert orders.topic("orders").retention is None


def test_alter_without_a_change_is_an_error(run: Run, orders: Log) -> None:
    result = run("topic", "alter", "orders")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: nothing to change\n")


def test_delete_asks_and_leaves_the_topic_unless_the_answer_is_yes(run: Run, orders: Log) -> None:
    assert run("topic", "delete", "orders", input="n\n").exit_code == 1
    assert run("topic", "delete", "orders", input="").exit_code == 2
    assert [topic.name for topic in orders.topics()] == ["orders"]
    assert run("topic", "delete", "orders", input="y\n").exit_code == 0
    assert orders.topics() == []


def test_delete_with_yes_does_not_ask(run: Run, orders: Log) -> None:
    result = run("topic", "delete", "orders", "--yes")
    assert result.output == 'deleted topic "orders"\n'
    assert orders.topics() == []
