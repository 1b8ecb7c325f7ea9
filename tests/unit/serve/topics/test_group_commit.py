"""One thread that appends for all: a failing log is told, and what was begun comes first afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headwater import Log
from headwater.errors import Fenced, HeadwaterError, LogUnavailable, SinkUnavailable
from headwater.log import Producer
from headwater.serve.topics.body import Body
from headwater.serve.topics.group_commit import GroupCommit
from headwater.serve.topics.request_journal import RequestJournal
from headwater.serve.topics.submission import Sent, Submission
from serve_kit import make_log, stored


async def send(group: GroupCommit, text: str, key: str | None = None) -> Sent:
    outcome = asyncio.get_running_loop().create_future()
    group.submit(Submission(Body(text.encode(), "application/json"), key, None, None, outcome))
    return await outcome


def test_requests_share_a_write_and_have_their_own_positions(tmp_path: Path) -> None:
    async def many(log: Log, journal: RequestJournal) -> list[Sent]:
        with GroupCommit(log, "orders", journal, asyncio.get_running_loop()) as group:
            return await asyncio.gather(*(send(group, f'{{"id":{number}}}') for number in range(50)))

    with make_log(tmp_path, partitions=1) as log, RequestJournal(tmp_path / "serve") as journal:
        sent = asyncio.run(many(log, journal))
        ids = [row["id"] for row in stored(log)]
    assert [ids[int(each.position.split("=")[1]) - 1] for each in sent] == list(range(50))


@pytest.mark.parametrize("error", [LogUnavailable("the disk is full"), Fenced("fenced"), OSError("a defect")])
def test_what_a_failing_log_did_not_take_is_taken_first_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    failing = [True]
    append = Producer._append_first

    def fail(producer: Producer) -> object:
        if failing[0] and producer._outbox:
            raise error
        return append(producer)

    monkeypatch.setattr(Producer, "_append_first", fail)

    async def story(log: Log, journal: RequestJournal) -> Sent:
        with GroupCommit(log, "orders", journal, asyncio.get_running_loop()) as group:
            for text in ('{"id":1}', '{"id":2}'):
                with pytest.raises(HeadwaterError):
                    await send(group, text, key="k" + text[6])
            failing[0] = False
            await send(group, '{"id":2}', key="k2")
            return await send(group, '{"id":1}', key="k1")

    with make_log(tmp_path, partitions=1) as log, RequestJournal(tmp_path / "serve") as journal:
        again = asyncio.run(story(log, journal))
        assert again.repeated and [row["id"] for row in stored(log)] == [1, 2]
        assert journal.pending() == []


def test_a_request_that_fails_before_the_producer_has_its_rows_is_not_taken_for_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = [True]
    put = Producer._put

    def fail(producer: Producer, *arguments: object, **named: object) -> None:
        if failing[0]:
            raise LogUnavailable("no memory to encode it")
        put(producer, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Producer, "_put", fail)

    async def story(log: Log, journal: RequestJournal) -> Sent:
        with GroupCommit(log, "orders", journal, asyncio.get_running_loop()) as group:
            with pytest.raises(LogUnavailable):
                await send(group, '{"id":1}', key="k1")
            failing[0] = False
            return await send(group, '{"id":1}', key="k1")

    with make_log(tmp_path, partitions=1) as log, RequestJournal(tmp_path / "serve") as journal:
        again = asyncio.run(story(log, journal))
        assert not again.repeated and [row["id"] for row in stored(log)] == [1]


def test_a_journal_that_cannot_be_written_for_a_while_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = [True]
    finish = RequestJournal.finish

    def fail(journal: RequestJournal, *arguments: object) -> None:
        if failing[0]:
            raise SinkUnavailable("the disk is full")
        finish(journal, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(RequestJournal, "finish", fail)

    async def story(log: Log, journal: RequestJournal) -> Sent:
        with GroupCommit(log, "orders", journal, asyncio.get_running_loop()) as group:
            assert not (await send(group, '{"id":1}', key="k1")).repeated
            with pytest.raises(SinkUnavailable):
                await send(group, '{"id":2}', key="k2")
            failing[0] = False
            await send(group, '{"id":2}', key="k2")
            return await send(group, '{"id":1}', key="k1")

    with make_log(tmp_path, partitions=1) as log, RequestJournal(tmp_path / "serve") as journal:
        again = asyncio.run(story(log, journal))
        assert again.repeated and [row["id"] for row in stored(log)] == [1, 2]
        assert journal.pending() == []
