"""Names of what a capture makes."""

from __future__ import annotations

import pytest

from headwater.capture.sqlite.object_names import ObjectNames, quoted
from headwater.errors import UsageError


def test_names_are_recognisable_and_quoted() -> None:
    names = ObjectNames("shop.crm")
    assert names.outbox == '"headwater_capture_shop.crm:outbox"'
    assert names.trigger(3, "insert") == "headwater_capture_shop.crm:3:insert"
    assert quoted('a"b') == '"a""b"'


def test_no_name_begins_with_another_captures_prefix() -> None:
    assert not ObjectNames("a_b").prefix.startswith(ObjectNames("a").prefix)
    assert ObjectNames("Shop").prefix.lower() != ObjectNames("shop").prefix.lower()


@pytest.mark.parametrize("name", ["", "a:b", "a b", 'a"'])
def test_names_that_could_be_taken_for_others_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be named"):
        ObjectNames(name)
