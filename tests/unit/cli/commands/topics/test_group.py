"""``headwater group``: groups listed, and forgotten."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Run

from headwater import Log


def test_groups_are_listed_with_their_topics(run: Run, behind: Log) -> None:
    assert run("group", "list").stdout.splitlines()[-1].split() == ["billing", "orders", "6"]
    told = json.loads(run("group", "list", "--format", "ndjson").stdout)
    assert told == {"group": "billing", "topics": ["orders"], "records": 6}


def test_a_group_is_deleted(run: Run, behind: Log) -> None:
    assert run("group", "delete", "billing").stdout == 'deleted group "billing"\n'
    assert behind.groups() == []
    assert run("group", "delete", "billing").exit_code == 2
    assert "no groups yet" in run("group", "list").stderr


def test_a_group_of_two_topics_is_one_line_with_the_sum(run: Run, behind: Log) -> None:
    behind.create_topic("clicks", "id BIGINT")
    with behind.producer("clicks") as producer:
        producer.send_batch([{"id": 1}, {"id": 2}])
    behind.seek("billing", "clicks", "earliest")
    told = json.loads(run("group", "list", "--format", "ndjson").stdout)
    assert told == {"group": "billing", "topics": ["clicks", "orders"], "records": 8}


def test_a_group_with_living_members_is_not_forgotten(run: Run, behind: Log) -> None:
    with behind.consumer("orders", "billing") as member:
        member.poll(1)
        assert run("group", "delete", "billing").exit_code != 0
    assert behind.groups() == ["billing"]
