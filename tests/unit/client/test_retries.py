"""What is told when a call is given up."""

from __future__ import annotations

import httpx2
import pytest

from headwater.client.retries import given_up
from headwater.errors import LogUnavailable


def test_the_last_answer_is_returned_and_where_there_was_none_that_is_an_error() -> None:
    refused = httpx2.Response(503)
    assert given_up(refused) is refused
    with pytest.raises(LogUnavailable, match="cannot be reached") as told:
        given_up(httpx2.ConnectError("refused"))
    assert told.value.detail == "refused"
