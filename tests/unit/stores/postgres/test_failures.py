"""What an error of PostgreSQL means: only what is known to pass by itself is tried again. No server."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from headwater.errors import DiskFull, HeadwaterError, RowError, SinkRefused, SinkUnavailable
from headwater.stores.postgres import failures


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (errors.SerializationFailure("in the way"), True),
        (errors.AdminShutdown("ended"), True),
        (errors.DiskFull("no space"), True),
        (errors.UndefinedTable("not there"), False),
        (errors.InsufficientPrivilege("no"), False),
        (psycopg.OperationalError("connection refused"), True),
        (psycopg.OperationalError('password authentication failed for user "shop"'), False),
        (psycopg.OperationalError('database "shop" does not exist'), False),
        (psycopg.ProgrammingError("what is this"), False),
    ],
)
def test_only_what_passes_by_itself_is_tried_again(error: psycopg.Error, passes: bool) -> None:
    assert failures.is_transient(error) == passes


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.NumericValueOutOfRange("too large"), RowError),
        (errors.NotNullViolation("null"), RowError),
        (errors.ProgramLimitExceeded("index row size"), RowError),
        (errors.DiskFull("no space"), DiskFull),
        (errors.CannotConnectNow("starting up"), SinkUnavailable),
        (errors.UndefinedTable("not there"), SinkRefused),
    ],
)
def test_a_row_that_does_not_fit_a_full_disk_and_a_refusal_are_told_apart(
    error: psycopg.Error, kind: type[HeadwaterError]
) -> None:
    assert type(failures.sink_error(error, 'view "orders"')) is kind


def test_the_first_line_is_told_and_the_hint_says_what_helps() -> None:
    told = failures.sink_error(errors.InsufficientPrivilege("denied\nLINE 1: SELECT"), 'view "orders"')
    assert (told.message, told.detail) == ('view "orders" cannot be used', "denied")
    assert "rights" in (told.hint or "")
    asked = failures.sink_error(psycopg.OperationalError("no password supplied"), 'view "orders"')
    assert "PGPASSWORD" in (asked.hint or "")
