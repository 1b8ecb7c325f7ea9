"""What errors of MySQL mean."""

from __future__ import annotations

import pymysql
import pytest

from headwater.capture.mysql.failures import source_error
from headwater.errors import SourceRefused


@pytest.mark.parametrize(
    "error",
    [
        pymysql.err.OperationalError(2013, "Lost connection"),
        pymysql.err.OperationalError(1040, "Too many connections"),
        pymysql.err.InterfaceError(0, ""),
        ConnectionResetError("reset"),
    ],
)
def test_what_passes_by_itself_is_waited_for(error: Exception) -> None:
    assert not isinstance(source_error(error, "db"), SourceRefused)


@pytest.mark.parametrize(
    ("code", "hint"),
    [(1045, "MYSQL_PWD"), (1227, "REPLICATION SLAVE"), (1236, "begin it anew"), (1146, "waiting")],
)
def test_what_does_not_pass_says_what_to_do(code: int, hint: str) -> None:
    found = source_error(pymysql.err.OperationalError(code, "no\nsecond line"), "db")
    assert isinstance(found, SourceRefused)
    assert found.detail == "no" and hint in str(found.hint)
