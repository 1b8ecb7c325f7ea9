"""Which edits of a user's function are noticed, and which are none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.engine.plan.fingerprint import fingerprint
from soaking import examples

FOLD = """
import math
from dataclasses import dataclass, field
from decimal import Decimal
from functools import singledispatch

RATE = 2
TABLE = {"a": {3, 1}, "b": [Decimal("1.5")]}


@dataclass
class Price:
    amount: int
    parts: list = field(default_factory=lambda: [1, 2])

    def taxed(self):
        return self.amount * RATE + sum(self.parts)


@dataclass(slots=True)
class Weight:
    grams: int = 40


@singledispatch
def counted(value):
    return 0


@counted.register
def _(value: int):
    return value * 50


def helper(n):
    return math.floor(deeper(n)) + len(TABLE)


def deeper(n):
    return n + 1 if n > 3 else helper(n + 5)


def fold(state, event, start=10):
    before = state or {"n": start}
    more = Price(7).taxed() + counted(Weight().grams)
    return {"n": before["n"] + helper(event["n"]) + more + sum(x * 2 for x in (1, 2))}
"""
HARMLESS = {
    "a comment": ("    before =", "    # the sum\n    before ="),
    "blank lines": ("\n\n\ndef fold", "\n\n\n\n\n\ndef fold"),
    "a line broken in two": ('{"n": start}\n', '{\n        "n": start,\n    }\n'),
    "a docstring": ("start=10):\n", 'start=10):\n    """Add up."""\n'),
    "annotations": ("(state, event, start=10)", "(state: dict | None, event: dict, start: int = 10) -> dict"),
    "quotes": ('before["n"]', "before['n']"),
    "what it does not refer to": ("RATE = 2", "RATE = 2\nOTHER = 3\n\n\ndef other():\n    return OTHER"),
}
HARMFUL = {
    "a constant in its body": ("x * 2", "x * 3"),
    "a function that is registered for a type": ("value * 50", "value * 51"),
    "a default that a function makes": ("lambda: [1, 2]", "lambda: [1, 3]"),
    "a default of a class with slots": ("grams: int = 40", "grams: int = 41"),
    "a default": ("start=10", "start=11"),
    "a constant of the file": ("RATE = 2", "RATE = 2.0"),
    "something deep in a constant": ("1.5", "1.50"),
    "a function that it calls": ("math.floor", "math.ceil"),
    "a function that is called by one that it calls": ("n > 3", "n >= 3"),
    "a method of a class of the file": ("self.amount *", "self.amount +"),
    "the order of operations": ('before["n"] + helper(event["n"])', 'helper(event["n"]) + before["n"]'),
}


def loaded(text: str, path: Path) -> Callable[..., Any]:
    path.write_text(text)
    scope: dict[str, Any] = {"__name__": "a_users_file", "__file__": str(path)}
    exec(compile(text, str(path), "exec", dont_inherit=True), scope)
    return scope["fold"]  # type: ignore[no-any-return]


def printed(text: str, folder: Path) -> str:
    return fingerprint(loaded(text, folder / f"fold{len(list(folder.iterdir()))}.py"))


def changed(edit: tuple[str, str]) -> str:
    assert edit[0] in FOLD
    return FOLD.replace(*edit)


@pytest.mark.parametrize("edit", HARMLESS.values(), ids=HARMLESS)
def test_an_edit_that_changes_nothing_is_none(edit: tuple[str, str], tmp_path: Path) -> None:
    assert printed(changed(edit), tmp_path) == printed(FOLD, tmp_path)


@pytest.mark.parametrize("edit", HARMFUL.values(), ids=HARMFUL)
def test_an_edit_that_may_change_a_result_is_noticed(edit: tuple[str, str], tmp_path: Path) -> None:
    assert printed(changed(edit), tmp_path) != printed(FOLD, tmp_path)


@pytest.mark.parametrize("edit", HARMFUL.values(), ids=HARMFUL)
def test_it_is_noticed_without_source_too(edit: tuple[str, str], tmp_path: Path) -> None:
    one, other = (loaded(text, tmp_path / "fold.py") for text in (FOLD, changed(edit)))
    (tmp_path / "fold.py").unlink()
    assert fingerprint(one) != fingerprint(other)


def test_a_file_that_was_edited_since_it_was_loaded_does_not_speak_for_the_code(tmp_path: Path) -> None:
    fold = loaded(FOLD, tmp_path / "fold.py")
    edited = changed(HARMFUL["a constant in its body"])
    (tmp_path / "fold.py").write_text(edited)
    assert fingerprint(fold) != fingerprint(loaded(edited, tmp_path / "again.py"))


def test_every_process_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(FOLD)
    code = (
        "import user; from headwater.engine.plan import fingerprint as it; print(it.fingerprint(user.fold))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert told == {printed(FOLD, tmp_path) + "\n"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.decimals(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3) | st.tuples(inner)
    ),
    max_leaves=5,
)


def closing_over(value: Any) -> Callable[[], Any]:
    return lambda: value


@examples(200)
@given(VALUES, VALUES)
def test_functions_that_close_over_other_values_are_others(one: Any, other: Any) -> None:
    same = repr(one) == repr(other)
    assert (fingerprint(closing_over(one)) == fingerprint(closing_over(other))) == same


def test_one_that_is_made_of_itself_has_an_end() -> None:
    def fold(state: Any, event: Any) -> Any:
        return fold(ring, event)

    ring: list[Any] = [fold]
    ring.append(ring)
    assert fingerprint(fold) == fingerprint(fold)


def test_lambdas_of_one_line_are_told_apart_or_count_both(tmp_path: Path) -> None:
    text = "fold = [lambda s, e, n=n: s + n for n in (1, 2)][{}]\n"
    assert printed(text.format(0), tmp_path) != printed(text.format(1), tmp_path)
    text = "fold, other = (lambda s, e: {}), (lambda s, e: {})\n"
    assert printed(text.format(1, 2), tmp_path) != printed(text.format(2, 2), tmp_path)
