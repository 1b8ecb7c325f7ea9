"""The stream of events: waited for no longer than one wants."""

from __future__ import annotations

import time
from typing import Any

import pymysql
import pytest

from headwater.capture.mysql import gtids
from headwater.capture.mysql.binlog import BinlogRequest, BinlogStream
from headwater.stores.mysql.address import parse


def opened(url: str, execute: Any, begin: str | None = None) -> BinlogStream:
    address = parse(url)
    here = execute("SELECT @@GLOBAL.gtid_binlog_pos")[0][0] if begin is None else begin
    return BinlogStream(address, BinlogRequest(gtids.parse(here), True, address.database, ["t"]))


def test_nothing_is_waited_for_no_longer_than_that(url: str, execute: Any) -> None:
    stream = opened(url, execute)
    started = time.monotonic()
    assert stream.next(0.0) is None and stream.next(0.3) is None
    assert 0.3 <= time.monotonic() - started < 5
    stream.close()


def test_events_come_one_by_one_with_their_places(url: str, execute: Any) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY)")
    stream = opened(url, execute)
    execute("INSERT INTO t VALUES (1)")
    kinds, places = [], []
    while event := stream.next(1.0):
        kinds.append(type(event).__name__)
        places.append(stream.place[1])
    assert kinds == ["MariadbGtidEvent", "WriteRowsEvent", "XidEvent"]
    assert places == sorted(places)
    stream.close()


def test_a_stream_that_broke_does_not_begin_again_by_itself(url: str, execute: Any) -> None:
    stream = opened(url, execute)
    for row in execute("SHOW PROCESSLIST"):
        if row[4] == "Binlog Dump":
            execute(f"KILL {row[0]}")
    with pytest.raises(pymysql.Error):
        while stream.next(5.0) is None:
            pass
    stream.close()


def test_what_the_server_does_not_have_it_says_at_once(url: str, execute: Any) -> None:
    with pytest.raises(pymysql.Error):
        opened(url, execute, "0-1-99999999")
