"""The clients of an S3 server: one of each in a process, and an error that helps where one is missing."""

from __future__ import annotations

import sys

import pytest

from headwater.engine.files import store_clients
from headwater.errors import UsageError


def test_a_process_has_one_client_of_a_server() -> None:
    first = store_clients.file_system("http://127.0.0.1:1", "eu-west-1")
    assert store_clients.file_system("http://127.0.0.1:1", "eu-west-1") is first
    assert first.region == "eu-west-1"


def test_a_client_for_conditional_puts_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "obstore.exceptions", None)
    with pytest.raises(UsageError, match=r"pip install 'headwater\[s3\]'"):
        store_clients.failures()
