"""What an error of MySQL means to a capture: wait and try again, or nothing to be done.

Invariant: only what is known to pass by itself is ``SourceUnavailable`` alone. No error carries the URL,
which may hold a password.
"""

from __future__ import annotations

from typing import Final

import pymysql

from headwater.errors import SourceRefused, SourceUnavailable

_TRANSIENT: Final = {1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1203, 1205, 1213, 1927}
"""Too many connections, shutting down, the network, locks."""
_CLIENT: Final = range(2000, 2100)
"""The client's own: no connection, or it broke."""
_RIGHTS: Final = {1044, 1045, 1142, 1143, 1227, 1698}
_BINLOG: Final = 1236

GRANT: Final = "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO …"
ANEW: Final = "drop the capture and begin it anew, with a new snapshot"


def source_error(error: Exception, title: str) -> SourceUnavailable:
    """Return an error of the server, or of the connection, as ours."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    if isinstance(error, OSError) or code in _TRANSIENT or code in _CLIENT or _is_closed(error):
        hint = "see whether the server runs and accepts connections, and what its log says"
        return SourceUnavailable(f"{title} cannot be read", detail=_said(error), hint=hint)
    return SourceRefused(f"{title} cannot be captured", detail=_said(error), hint=_hint(code))


def _is_closed(error: Exception) -> bool:
    return isinstance(error, pymysql.err.InterfaceError)


def _hint(code: int) -> str:
    if code == 1045:
        return "give the password in the URL, or in the environment variable MYSQL_PWD"
    if code in _RIGHTS:
        return f"give the user that Headwater connects as the rights to it: {GRANT}"
    if code == _BINLOG:
        return f"the server has no binlog from this position on, or another one: {ANEW}"
    return "waiting does not mend this: see what the server says, and start the capture again"


def _said(error: Exception) -> str:
    said = str(error.args[-1]) if error.args else ""
    return (said.strip().splitlines() or [type(error).__name__])[0]
