"""Calls of a store that may fail for a while: tried again, later each time, and then told as what they are.

Slow answers, errors of the server, throttling and cut bodies pass; a bucket that is not there and rights
that are missing do not. Invariant: what is told of a failure has no secret in it: of what a client says, only
the kind of error and the operation are passed on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TypeVar

from headwater import durable
from headwater.backoff import Backoff
from headwater.engine.files.seal import BrokenSeal
from headwater.engine.home.notes import damaged
from headwater.errors import HeadwaterError, SinkRefused, SinkUnavailable

PATIENCE_SECONDS = 30.0
"""How long one call is tried again, before the node that needs it waits as for any target that is away."""
_PAUSES = Backoff(0.1, 5.0)
_KINDS = (
    re.compile(r"AWS Error [A-Z_]+( \([^)]*\))? during \w+ operation"),
    re.compile(r"curlCode: \d+, [A-Za-z' ]+"),
    re.compile(r"status code: \d+[ A-Za-z]*"),
)
_REFUSALS = re.compile(
    r"ACCESS_DENIED|NO_SUCH_BUCKET|INVALID_ACCESS_KEY|SIGNATURE_DOES_NOT_MATCH|INVALID_SIGNATURE"
    r"|UNRECOGNIZED_CLIENT|NoSuchBucket|AccessDenied|status code: 40[13]|HTTP status 40[13]"
)

T = TypeVar("T")


def retried(location: str, call: Callable[[], T], failures: tuple[type[Exception], ...]) -> T:
    """Return what a call does, tried again while it fails with what may pass."""
    failing: tuple[type[Exception], ...] = (*failures, BrokenSeal)
    pauses = _PAUSES.pauses(PATIENCE_SECONDS)
    while True:
        try:
            return call()
        except FileNotFoundError as error:
            if _is_refusal(error):  # it is the bucket that is not there
                raise _told(location, error) from None
            raise
        except failing as error:
            if getattr(error, "errno", None) in durable.FULL:  # of this machine's own disk
                raise
            pause = None if _is_refusal(error) else next(pauses, None)
            if pause is None:
                raise _told(location, error) from None
            time.sleep(pause)


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, PermissionError) or _REFUSALS.search(str(error)) is not None


def _told(location: str, error: Exception) -> HeadwaterError:
    if isinstance(error, BrokenSeal):
        return damaged(location, str(error))
    found = [match[0] for kind in _KINDS if (match := kind.search(str(error)))]
    detail = "; ".join(found) or type(error).__name__
    if _is_refusal(error):
        return SinkRefused(
            f'store "{location}" refuses what a pipeline keeps there',
            detail=detail,
            hint="check the bucket, and the rights of the credentials in the environment",
        )
    return SinkUnavailable(f'store "{location}" cannot be reached', detail=detail)
