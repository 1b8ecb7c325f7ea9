"""Positions in a binlog as text."""

from __future__ import annotations

import pytest

from headwater.capture.mysql.position import BinlogPlace, file_number, parse
from headwater.errors import SourceRefused


@pytest.mark.parametrize("text", ["0-1-5", "0-1-5@1/binlog.000003:4711", "@1/binlog.000001:330"])
def test_a_position_is_written_as_it_is_read(text: str) -> None:
    assert str(parse(text)) == text


def test_a_position_knows_its_place() -> None:
    assert parse("0-1-5@7/mysql-bin.000012:99").place == BinlogPlace(7, "mysql-bin.000012", 99)


@pytest.mark.parametrize("text", ["nonsense", "0-1-5@", "0-1-5@binlog:1", "16B3748@1/b.000001:4"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(SourceRefused, match="no position"):
        parse(text)


def test_places_are_in_the_order_of_their_files() -> None:
    first, second = BinlogPlace(1, "binlog.999999", 900), BinlogPlace(1, "binlog.1000000", 4)
    assert first.order < second.order
    assert file_number("binlog") == 0
