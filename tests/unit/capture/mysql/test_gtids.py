"""Sets of GTIDs of both kinds."""

from __future__ import annotations

import pytest

from headwater.capture.mysql.gtids import ServerGtids, parse

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize("text", ["", "0-1-5", "0-1-5,3-2-7", f"{A}:1-5", f"{A}:1-5:7,{B}:3"])
def test_a_set_is_written_as_it_is_read(text: str) -> None:
    assert str(parse(text)) == text


def test_sets_are_written_in_one_way() -> None:
    assert str(parse("3-2-7,\n0-1-5")) == "0-1-5,3-2-7"
    assert str(parse(f"{B}:1,{A.upper()}:4-5:1-3:9")) == f"{A}:1-5:9,{B}:1"


def test_a_transaction_of_mariadb_is_the_last_of_its_domain() -> None:
    assert str(parse("0-1-5").with_gtid("0-2-6")) == "0-2-6"
    assert str(parse("0-1-5").with_gtid("1-1-1")) == "0-1-5,1-1-1"


def test_a_transaction_of_mysql_closes_a_gap() -> None:
    assert str(parse(f"{A}:1-5:7").with_gtid(f"{A}:6")) == f"{A}:1-7"
    assert str(ServerGtids().with_gtid(f"{B}:1")) == f"{B}:1"


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("0-1-5", "0-1-5"),
        ("0-1-5", "0-2-4"),
        ("0-1-5", ""),
        ("0-1-5,1-1-1", "1-1-1"),
        (f"{A}:1-9", f"{A}:2-3:5"),
        (f"{A}:1", ""),
    ],
)
def test_a_set_covers_what_is_in_it(more: str, less: str) -> None:
    assert parse(more).covers(parse(less))
    assert more == less or not parse(less).covers(parse(more))


def test_sets_of_different_kinds_have_nothing_in_common() -> None:
    assert not parse("0-1-5").covers(parse(f"{A}:1"))
    assert not parse(f"{A}:1").covers(parse("0-1-5"))


@pytest.mark.parametrize("text", ["nonsense", "0-1", "0-1-x", f"{A}:", f"{A}:a", "a:1"])
def test_what_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no GTID"):
        parse(text)
