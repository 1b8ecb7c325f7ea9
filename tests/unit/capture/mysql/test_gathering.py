"""Events as transactions; with a server in tests/integration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pymysqlreplication.event import GtidEvent, NotImplementedEvent, QueryEvent, XidEvent
from pymysqlreplication.row_event import WriteRowsEvent

from headwater.capture.change import SourceColumn
from headwater.capture.mysql.catalog import made
from headwater.capture.mysql.column_types import MySqlColumn
from headwater.capture.mysql.gathering import EmptiedTables, Gathering
from headwater.capture.mysql.gtids import ServerGtids, parse
from headwater.capture.mysql.row_changes import RowRun
from headwater.errors import SourceRefused

SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TABLE = made("t", (MySqlColumn(SourceColumn("id", pa.int32(), "int", False), "int"),), ("id",))


def event(kind: type[Any], **attributes: Any) -> Any:
    """Return an event as if the package had parsed it."""
    found = kind.__new__(kind)
    for name, value in attributes.items():
        setattr(found, name, value)
    return found


def gtid(number: int) -> Any:
    return event(GtidEvent, sid=bytes.fromhex(SERVER.replace("-", "")), gno=number, timestamp=1_700_000_000)


def query(text: str) -> Any:
    return event(QueryEvent, query=text, schema=b"shop")


def rows(*ids: int, whole: bool = True) -> Any:
    found = event(WriteRowsEvent, table="t", number_of_columns=1, columns=[SimpleNamespace(name="id")])
    found.columns_present_bitmap = b"\x01" if whole else b"\x00"
    found._RowsEvent__rows = [{"values": {"id": id}, "none_sources": {}} for id in ids]
    return found


@pytest.fixture
def gathering() -> Gathering:
    found = Gathering("shop", {"t": None}, lambda name, columns: TABLE)
    found.begin(ServerGtids())
    return found


def test_transactions_of_mysql_begin_and_end(gathering: Gathering) -> None:
    ended = [gathering.take(each) for each in (gtid(1), query("BEGIN"), rows(1, 2), event(XidEvent))]
    ended += [gathering.take(each) for each in (gtid(2), query("CREATE TABLE u (a int)"))]
    assert ended == [False, False, False, True, False, True]
    assert str(gathering.gtids) == f"{SERVER}:1-2"
    assert gathering.altered
    gathered = gathering.taken()
    assert gathered.transactions.id == (f"{SERVER}:1",)
    assert gathered.transactions.committed.tolist() == [1_700_000_000_000_000]
    (run,) = gathered.parts
    assert isinstance(run, RowRun) and len(run.changes(gathered.transactions)) == 2


def test_an_open_transaction_keeps_its_numbers(gathering: Gathering) -> None:
    for each in (gtid(1), query("BEGIN"), rows(1, 2)):
        gathering.take(each)
    first = gathering.taken()
    gathering.take(rows(3))
    (run,) = (second := gathering.taken()).parts
    assert isinstance(run, RowRun) and run.changes(second.transactions).index.tolist() == [2]
    assert first.transactions.position == second.transactions.position == (f"{SERVER}:1",)


def test_changes_that_were_delivered_are_left_out(gathering: Gathering) -> None:
    gathering.begin(ServerGtids(), skip=3)
    for each in (
        gtid(1),
        query("BEGIN"),
        rows(1, 2),
        rows(3, 4),
        event(XidEvent),
        gtid(2),
        query("BEGIN"),
        rows(5),
    ):
        gathering.take(each)
    (run,) = (gathered := gathering.taken()).parts
    assert isinstance(run, RowRun)
    assert run.changes(gathered.transactions).rows.to_pylist() == [{"id": 4}, {"id": 5}]
    assert run.changes(gathered.transactions).index.tolist() == [3, 0]


def test_a_truncation_stands_between_what_was_before_and_after_it(gathering: Gathering) -> None:
    for number, each in enumerate((rows(1), query("TRUNCATE TABLE shop.t"), rows(2)), 1):
        gathering.take(gtid(number))
        gathering.take(each)
    assert [type(each) for each in gathering.taken().parts] == [RowRun, EmptiedTables, RowRun]


def test_a_table_that_came_later_has_only_what_came_later() -> None:
    found = Gathering("shop", {"t": parse(f"{SERVER}:1-2")}, lambda name, columns: TABLE)
    found.begin(parse(f"{SERVER}:1"))
    for each in (
        gtid(2),
        query("BEGIN"),
        rows(1),
        event(XidEvent),
        gtid(3),
        query("BEGIN"),
        rows(2),
        event(XidEvent),
    ):
        found.take(each)
    (run,) = (gathered := found.taken()).parts
    assert isinstance(run, RowRun) and run.changes(gathered.transactions).rows.to_pylist() == [{"id": 2}]


@pytest.mark.parametrize(
    "untold",
    [
        query("UPDATE t SET id = 2"),
        query("ALTER TABLE t DROP PARTITION p"),
        rows(1, whole=False),
        event(NotImplementedEvent, event_type=40),
    ],
)
def test_what_does_not_tell_its_rows_is_refused(gathering: Gathering, untold: Any) -> None:
    gathering.take(gtid(1))
    with pytest.raises(SourceRefused, match="does not tell every change"):
        gathering.take(untold)


def test_a_rollback_behind_changes_is_refused(gathering: Gathering) -> None:
    for each in (gtid(1), query("BEGIN"), rows(1)):
        gathering.take(each)
    with pytest.raises(SourceRefused, match="does not tell"):
        gathering.take(query("ROLLBACK"))


def test_a_transaction_of_other_tables_ends_however_it_ends(gathering: Gathering) -> None:
    for each in (gtid(1), query("BEGIN"), query("DELETE FROM others"), query("ROLLBACK TO `a`")):
        assert not gathering.take(each)
    assert gathering.take(query("ROLLBACK"))
    assert str(gathering.gtids) == f"{SERVER}:1"
