"""What an error of MySQL means to a sink: try again, a row that does not fit, or nothing to be done.

Invariant: only what may pass by itself is tried again. No error carries the URL, which may hold a password.
"""

from __future__ import annotations

from typing import Final

import pymysql

from headwater.errors import HeadwaterError, RowError, SinkRefused, SinkUnavailable
from headwater.stores import disk

_TRANSIENT: Final = {1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1203, 1205, 1213, 1927}
"""Too many connections, shutting down, the network, locks."""
_CLIENT: Final = range(2000, 2100)
"""The client's own: no connection, or it broke."""
_FULL: Final = {1021, 1114}
_ROW: Final = {1048, 1153, 1264, 1265, 1292, 1366, 1406}
"""A null, a packet that is too large, a value that its column does not hold."""
_PASSWORD: Final = 1045


def is_transient(error: Exception) -> bool:
    """Tell whether an error may pass by itself."""
    code = _code(error)
    closed = isinstance(error, (OSError, pymysql.err.InterfaceError))
    return closed or code in _TRANSIENT or code in _CLIENT


def sink_error(error: Exception, what: str) -> HeadwaterError:
    """Return an error of the server, or of the connection, as ours."""
    code, said = _code(error), _said(error)
    if is_transient(error):
        hint = "see whether the server runs and accepts connections"
        return SinkUnavailable(f"the server of {what} cannot be used", detail=said, hint=hint)
    if code in _FULL:
        return disk.full(what, said)
    if code in _ROW or isinstance(error, (pymysql.err.DataError, ValueError)):
        return RowError(f"a row does not fit {what}", detail=said)
    hint = (
        "give the password in the URL, or in MYSQL_PWD" if code == _PASSWORD else "see what the server says"
    )
    return SinkRefused(f"{what} cannot be used", detail=said, hint=hint)


def _code(error: Exception) -> int:
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def _said(error: Exception) -> str:
    said = str(error.args[-1]) if error.args else ""
    return (said.strip().splitlines() or [type(error).__name__])[0][:200]
