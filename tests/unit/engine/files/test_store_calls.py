"""Calls of a store: which are tried again, and what is told of those that fail."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from headwater.engine.files import store_calls
from headwater.engine.files.seal import BrokenSeal
from headwater.engine.files.store_calls import retried
from headwater.errors import HeadwaterError, SinkRefused, SinkUnavailable, is_transient


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_calls, "PATIENCE_SECONDS", 0.5)


def failing(error: Exception, times: int) -> Callable[[], str]:
    left = iter(range(times))

    def call() -> str:
        if next(left, None) is not None:
            raise error
        return "done"

    return call


@pytest.mark.parametrize("error", [OSError("AWS Error SLOW_DOWN"), BrokenSeal("cut")])
def test_what_may_pass_is_tried_again(error: Exception) -> None:
    assert retried("s3://b/p", failing(error, 2), (OSError,)) == "done"


def test_what_stays_away_is_an_error_that_passes() -> None:
    secret = "AWS Error SLOW_DOWN during PutObject operation: <AWSAccessKeyId>AKIA7391</AWSAccessKeyId>"
    with pytest.raises(SinkUnavailable) as caught:
        retried("s3://b/p", failing(OSError(secret), 100), (OSError,))
    assert is_transient(caught.value)
    assert caught.value.detail == "AWS Error SLOW_DOWN during PutObject operation"


def test_of_an_unknown_error_only_its_kind_is_told() -> None:
    with pytest.raises(SinkUnavailable) as caught:
        retried("s3://b/p", failing(OSError("token=7391"), 100), (OSError,))
    assert caught.value.detail == "OSError"


def test_a_refusal_is_told_at_once() -> None:
    denied = OSError("AWS Error ACCESS_DENIED during PutObject operation")
    with pytest.raises(SinkRefused):
        retried("s3://b/p", failing(denied, 1), (OSError,))


def test_what_stays_cut_is_damaged() -> None:
    with pytest.raises(HeadwaterError, match="is damaged"):
        retried("s3://b/p", failing(BrokenSeal("cut"), 100), (OSError,))


def test_what_is_not_there_and_a_disk_without_room_are_told_as_they_are() -> None:
    with pytest.raises(FileNotFoundError):
        retried("s3://b/p", failing(FileNotFoundError("gone"), 1), (OSError,))
    with pytest.raises(OSError, match="full"):
        retried("s3://b/p", failing(OSError(errno.ENOSPC, "full"), 1), (OSError,))
