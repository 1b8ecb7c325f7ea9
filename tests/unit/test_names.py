"""Names as users write them."""

from __future__ import annotations

from headwater.names import backquoted, listed, parts


def test_names_stand_between_commas_with_any_spaces() -> None:
    assert listed("shop, day ,hour") == ("shop", "day", "hour")


def test_an_empty_name_is_none_of_a_list_but_a_part_of_a_text() -> None:
    assert listed("shop,,day,") == ("shop", "day")
    assert parts("shop,,day,") == ("shop", "", "day", "")


def test_a_list_of_names_is_taken_as_it_is() -> None:
    assert listed(["a,b", " c"]) == ("a,b", " c")


def test_a_name_with_a_backquote_is_written_so_that_it_is_one_name() -> None:
    assert backquoted("a`b.c") == "`a``b.c`"
