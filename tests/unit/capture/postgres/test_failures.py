"""What errors of the server mean."""

from __future__ import annotations

import psycopg
import pytest

from headwater.capture.postgres.failures import source_error
from headwater.errors import SourceRefused, SourceUnavailable


def test_a_server_that_is_away_may_come_back() -> None:
    error = source_error(psycopg.OperationalError("connection refused"), "the database")
    assert type(error) is SourceUnavailable
    assert error.message == "the database cannot be read"


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (psycopg.OperationalError('password authentication failed for user "x"'), "PGPASSWORD"),
        (psycopg.OperationalError("no pg_hba.conf entry for replication connection"), "pg_hba.conf"),
        (psycopg.errors.InsufficientPrivilege("permission denied for table t"), "SELECT, and REPLICATION"),
        (psycopg.errors.UndefinedObject('publication "p" does not exist'), "begin anew"),
        (psycopg.errors.SyntaxError("what?"), "waiting does not mend this"),
    ],
)
def test_what_waiting_does_not_mend_is_refused_with_what_to_do(error: psycopg.Error, hint: str) -> None:
    refused = source_error(error, "the database")
    assert isinstance(refused, SourceRefused)
    assert refused.hint is not None
    assert hint in refused.hint
