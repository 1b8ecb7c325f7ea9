"""Directories and files that go while a log is open, and descriptors that run out: said in words."""

from __future__ import annotations

import errno
import gc
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater
from headwater.errors import DamagedLog, HeadwaterError, LogUnavailable, UnknownTopic, is_transient
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.failures import unusable


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic("t", "n BIGINT", partitions=2)
        with log.producer("t") as producer:
            producer.send_batch([{"n": n} for n in range(20)])
        yield log


def refused(use: Callable[[], Any]) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as told:
        use()
    assert told.value.hint
    return told.value


def in_use(log: EmbeddedLog) -> tuple[headwater.Producer, headwater.Consumer, Iterator[Any]]:
    """Return a producer, a consumer and a follower, all under way."""
    producer, consumer = log.producer("t"), log.consumer("t", "g")
    assert consumer.poll(5) is not None
    follower = log.read("t", follow=True)
    next(follower)
    return producer, consumer, follower


@pytest.mark.parametrize("gone", ["topic", "log"])
def test_a_directory_that_is_deleted_under_its_users_is_told_to_each(log: EmbeddedLog, gone: str) -> None:
    producer, consumer, follower = in_use(log)
    shutil.rmtree(log.root if gone == "log" else log.root / "topics" / "t")
    kind = LogUnavailable if gone == "log" else UnknownTopic
    assert isinstance(refused(consumer.commit), kind)

    def send() -> None:
        producer.send_batch([{"n": 1}])
        producer.flush()

    def consume() -> None:
        for _ in range(20):
            consumer.poll(0.1)

    for use in (send, consume, lambda: [next(follower) for _ in range(20)]):
        refused(use)
    for use in (
        lambda: list(log.read("t")),
        lambda: log.describe("t"),
        lambda: log.producer("t"),
        lambda: log.consumer("t", "other"),
        lambda: log.compact("t"),
        lambda: list(log.appended_ranges("t", 0, 0)),
        producer.close,
    ):
        refused(use)
    consumer.close()


def test_a_log_that_is_moved_away_is_gone_at_each_try_and_there_when_it_is_back(log: EmbeddedLog) -> None:
    log.groups()
    away = log.root.with_name("away")
    log.root.rename(away)
    for replaced in (False, True):  # an empty directory, as of a disk that is not mounted
        for use in (
            lambda: log.topic("t"),
            lambda: log.resolve("t", "latest"),
            lambda: log.producer("t", id="p"),
            lambda: list(log.read("t")),
        ):
            for _ in range(2):
                assert is_transient(refused(use)), replaced
        if not replaced:
            log.root.mkdir()
    log.root.rmdir()
    away.rename(log.root)
    with log.producer("t", id="p") as producer:
        producer.send({"n": 20})
    assert sum(len(batch) for batch in log.read("t")) == 21


@given(st.sampled_from(sorted(errno.errorcode)))
def test_only_what_may_pass_by_itself_is_waited_for(number: int) -> None:
    waits = {"EAGAIN", "EBUSY", "EINTR", "EIO", "EMFILE", "ENFILE", "ENOLCK", "ENOMEM", "ENOTCONN", "ESTALE",
             "ETIMEDOUT", "ENOSPC", "EDQUOT", "EFBIG", "EWOULDBLOCK"}  # fmt: skip
    error = unusable(Path("/"), OSError(number, os.strerror(number)))
    assert is_transient(error) == (errno.errorcode[number] in waits)


def test_a_commit_into_a_groups_file_that_was_deleted_is_refused(log: EmbeddedLog) -> None:
    with log.consumer("t", "g") as consumer:
        assert consumer.poll(5) is not None
        for left in log.root.glob("state.db*"):
            left.unlink()
        assert "nothing was stored" in str(refused(consumer.commit).detail)
        refused(lambda: log.seek("g", "t", "earliest"))


@contextmanager
def no_descriptors() -> Iterator[None]:
    gc.collect()  # what earlier tests have left open would be closed, and free, at any moment
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    try:
        yield
    finally:
        for each in taken:
            os.close(each)


def test_running_out_of_descriptors_is_told_and_passes(log: EmbeddedLog) -> None:
    log.groups()
    headwater.open(log.url).close()  # all modules are there then
    producer, before = log.producer("t"), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        with no_descriptors():
            for use in (
                lambda: list(log.read("t")),
                lambda: log.describe("t"),
                lambda: log.resolve("t", "earliest"),
                lambda: log.resolve("t", 3),
                lambda: log.consumer("t", "other"),
                lambda: log.compact("t"),
                lambda: list(log.appended_ranges("t", 0, 0)),
                lambda: log.verify(),
                lambda: log.topics(),
                lambda: log.create_topic("other", "n BIGINT"),
                lambda: headwater.open(log.url).topics(),
            ):
                refused(use)
            producer.send_batch([{"n": 20}])
            assert "files are open" in str(refused(producer.flush))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    producer.close()
    assert sorted(row["n"] for batch in log.read("t") for row in batch.to_pylist()) == list(range(21))


def test_a_declaration_that_is_missing_is_found(log: EmbeddedLog) -> None:
    (log.root / "topics" / "t" / "topic.json").unlink()
    [finding] = log.verify().findings
    assert (finding.topic, finding.partition) == ("t", None)
    assert "topic.json" in finding.problem
    with pytest.raises(DamagedLog, match='declaration of topic "t" cannot be read'):
        log.topic("t")
    with pytest.raises(DamagedLog):
        log.create_topic("t", "n BIGINT")
