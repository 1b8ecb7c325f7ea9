"""What an error of PostgreSQL means: wait and try again, a row that does not fit, or nothing to be done.

Invariant: only what is known to pass by itself is tried again; everything else stops its node at once
and says why. No error carries the connection string, which may hold a password.
"""

from __future__ import annotations

import psycopg

from headwater.errors import HeadwaterError, RowError, SinkRefused, SinkUnavailable
from headwater.stores import disk

_TRANSIENT_CLASSES = ("08", "53", "58")
"""Connections; resources that ran out, such as disk, memory and connections; the server's own system."""
_TRANSIENT = {
    "25006",  # a standby, which may become the primary
    "25P03", "25P04", "57P05",  # a session or transaction that took too long
    "40001", "40003", "40P01",  # another transaction was in the way
    "55006", "55P03",  # somebody has what is needed
    "57014", "57P01", "57P02", "57P03",  # ended by an administrator, by a crash, or not up yet
}  # fmt: skip
_PERMANENT = (
    "authentication failed", "no password supplied", "does not exist", "pg_hba.conf", "permission denied"
)  # fmt: skip
"""What waiting does not mend, though it is told while connecting, where libpq gives no code."""


def is_transient(error: psycopg.Error) -> bool:
    """Tell whether trying again may help."""
    code = error.sqlstate
    if code is not None:
        return code.startswith(_TRANSIENT_CLASSES) or code in _TRANSIENT
    lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return lost and not any(phrase in str(error) for phrase in _PERMANENT)


def sink_error(error: psycopg.Error, what: str) -> HeadwaterError:
    """Return an error of the server as ours."""
    # A key or order that is too long for an index comes as an operational error, and is none.
    if isinstance(error, psycopg.DataError | psycopg.IntegrityError | psycopg.errors.ProgramLimitExceeded):
        return RowError(f"a row does not fit {what}", detail=_first_line(error))
    if error.sqlstate == "53100":
        return disk.full(what, _first_line(error))
    if is_transient(error):
        hint = "see whether the server runs and accepts connections, and what its log says"
        return SinkUnavailable(f"{what} cannot be used", detail=_first_line(error), hint=hint)
    return SinkRefused(f"{what} cannot be used", detail=_first_line(error), hint=_refused(error))


def _refused(error: psycopg.Error) -> str:
    if "password" in str(error):
        return "give the password in the URL, in the environment variable PGPASSWORD, or in ~/.pgpass"
    if error.sqlstate == "42P07":
        return "rename or move what has that name"
    if error.sqlstate == "42501":
        return "give the user that Headwater connects as the rights to it"
    return "waiting does not mend this: see what the server says, and start the pipeline again"


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
