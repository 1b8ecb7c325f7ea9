"""What an error of MySQL means to a sink."""

from __future__ import annotations

import pymysql
import pytest

from headwater.errors import DiskFull, HeadwaterError, RowError, SinkRefused, SinkUnavailable
from headwater.stores.mysql.failures import is_transient, sink_error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (pymysql.err.OperationalError(2013, "Lost connection"), SinkUnavailable),
        (pymysql.err.OperationalError(1213, "Deadlock found"), SinkUnavailable),
        (pymysql.err.InterfaceError(0, ""), SinkUnavailable),
        (ConnectionResetError("reset"), SinkUnavailable),
        (pymysql.err.OperationalError(1114, "The table is full"), DiskFull),
        (pymysql.err.DataError(1406, "Data too long for column 'k'"), RowError),
        (pymysql.err.IntegrityError(1048, "Column 'k' cannot be null"), RowError),
        (pymysql.err.OperationalError(1045, "Access denied"), SinkRefused),
        (pymysql.err.ProgrammingError(1146, "Table doesn't exist"), SinkRefused),
    ],
)
def test_errors_are_told_apart(error: Exception, kind: type[HeadwaterError]) -> None:
    assert type(sink_error(error, 'table "stock"')) is kind
    assert is_transient(error) == (kind is SinkUnavailable)
