"""``docs/glossary.md`` has one word for each concept, and the code has one class for each name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text()
ROW = re.compile(r"^\| \*\*(.+?)\*\* \|(.*?)\|(.*?)\| (.+) \|$", re.MULTILINE)

WORDS = [
    "Event",
    "Change",
    "Topic",
    "Partition",
    "Position",
    "Log",
    "Source",
    "Stream",
    "Table",
    "View",
    "Sink",
    "Pattern",
    "Match",
    "Query",
    "Clock",
    "Pipeline",
    "Node",
    "Stage",
    "Bucket",
    "Run",
    "Batch",
]
"""The words of the design: each must be explained."""

TRADE = "watermark|offset|lease|fenced|snapshot|compaction|tombstone|changelog|checkpoint|micro-batch"
"""Words that somebody who comes from another system looks for."""

SAME_NAMES = {"Count", "Max", "Mean", "Min", "Sum"}
"""Aggregates of windows and of tables: their names stand in the definitions of checkpoints."""


OTHERWISE = {"Behind"}
"""Words that still name something else: an error of a view's reader."""


class Term(NamedTuple):
    """A row of the glossary."""

    word: str
    also: list[str]
    classes: list[str]
    meaning: str


def terms() -> list[Term]:
    return [
        Term(word, listed(also), re.findall(r"`(\w+)`", of), why) for word, also, of, why in ROW.findall(PAGE)
    ]


def listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


@cache
def classes() -> Counter[str]:
    """Return the classes of the source, also private ones and those inside of others and of functions."""
    trees = (ast.parse(path.read_text()) for path in (ROOT / "src").rglob("*.py"))
    return Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def repeated(names: list[str]) -> list[str]:
    return [name for name, times in Counter(map(str.lower, names)).items() if times > 1]


def test_every_row_of_a_table_is_a_term() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| **")]
    assert len(rows) == len(terms()) == PAGE.count("**") // 2


def test_a_word_is_explained_once() -> None:
    words = [word for term in terms() for word in term.word.split(", ")]
    headings = re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    assert repeated([*words, *headings]) == []


def test_the_words_of_others_name_one_of_ours_each_and_none_of_ours() -> None:
    others = [other for term in terms() for other in term.also]
    assert repeated([*others, *(term.word for term in terms())]) == []


def test_the_words_of_the_design_are_explained() -> None:
    assert set(WORDS) - {term.word for term in terms()} == set()


def test_the_words_of_the_trade_are_found() -> None:
    known = " ".join(f"{term.word} {' '.join(term.also)}".lower() for term in terms())
    assert [word for word in TRADE.split("|") if word not in known] == []


def test_a_class_that_the_glossary_names_is_there_and_is_that_of_one_word() -> None:
    named = [name for term in terms() for name in term.classes]
    assert set(named) - classes().keys() == set()
    assert repeated(named) == []


def test_a_word_that_is_a_class_says_so() -> None:
    silent = {term.word for term in terms() if term.word not in term.classes}
    assert silent & classes().keys() == OTHERWISE


def test_every_class_has_a_name_of_its_own() -> None:
    assert {name for name, times in classes().items() if times > 1} == SAME_NAMES
