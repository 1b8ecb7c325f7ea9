"""What an error of PostgreSQL means to a capture: wait and try again, or nothing to be done.

Invariant: only what is known to pass by itself is ``SourceUnavailable`` alone. No error carries the
connection string, which may hold a password.
"""

from __future__ import annotations

import psycopg

from headwater.errors import SourceRefused, SourceUnavailable
from headwater.stores.postgres.failures import is_transient


def source_error(error: psycopg.Error, what: str) -> SourceUnavailable:
    """Return an error of the server as ours."""
    if is_transient(error):
        hint = "see whether the server runs and accepts connections, and what its log says"
        return SourceUnavailable(f"{what} cannot be read", detail=_first_line(error), hint=hint)
    return SourceRefused(f"{what} cannot be captured", detail=_first_line(error), hint=_hint(error))


def _hint(error: psycopg.Error) -> str:
    said = str(error)
    if "password" in said:
        return "give the password in the URL, in the environment variable PGPASSWORD, or in ~/.pgpass"
    if "pg_hba.conf" in said:
        return "let the user in by a line of pg_hba.conf for this database, and for replication connections"
    if error.sqlstate == "42501":
        return "give the user that Headwater connects as the rights to it: SELECT, and REPLICATION"
    if error.sqlstate == "42704" and "publication" in said:
        return "the publication was not there when these changes were made: drop the capture and begin anew"
    return "waiting does not mend this: see what the server says, and start the capture again"


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
