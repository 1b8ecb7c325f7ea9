from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import UsageError
from headwater.sourcing.loading import load_decider

ONE = """
from account_kit import account
first = account("first")
"""


def test_the_only_decider_of_a_file_is_found_or_the_one_that_is_named(tmp_path: Path) -> None:
    one, two, none = (tmp_path / f"{name}_deciders.py" for name in ("one", "two", "none"))
    one.write_text(ONE)
    two.write_text(ONE + 'second = account("other")\n')
    none.write_text("x = 1\n")
    assert load_decider(one).name == "first"
    assert load_decider(f"{two}:other").name == load_decider(f"{two}:second").name == "other"
    for path, words in ((two, "2 deciders"), (none, "no decider"), (f"{two}:thrid", 'no decider "thrid"')):
        with pytest.raises(UsageError, match=words):
            load_decider(path)


def test_the_decider_of_unique_values_is_found(tmp_path: Path) -> None:
    one, two = tmp_path / "one_unique.py", tmp_path / "two_unique.py"
    one.write_text('from headwater.sourcing import unique\nnames = unique("username")\n')
    two.write_text(one.read_text() + ONE)
    assert load_decider(one).name == "username.claims"
    for name in ("names", "username", "username.claims"):
        assert load_decider(f"{two}:{name}").name == "username.claims"
    assert load_decider(f"{two}:first").name == "first"
