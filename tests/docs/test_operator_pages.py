"""Docs pages show how operators, aggregates, targets, pipelines and harnesses are called, as they are.

Each parameter with its default, and none that there is not; also in the examples.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.public_calls import AGGREGATES, HARNESS, OPERATORS, PIPELINE, PUBLIC, TARGETS, parameters, signature

DOCS = Path(__file__).parents[2] / "docs"
PAGES = DOCS / "operators"
README = DOCS.parent / "README.md"
PYTHON = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def page_of(operator: str) -> Path:
    return PAGES / f"{operator.rpartition('.')[2]}.md"


def first_fence(text: str) -> str:
    found = re.search(r"^```\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, "there is no block that shows how it is called"
    return re.sub(r"\s+", " ", found[1]).replace("( ", "(").replace(" )", ")").strip()


@pytest.mark.parametrize("name", OPERATORS)
def test_a_page_begins_with_how_its_operator_is_called(name: str) -> None:
    assert first_fence(page_of(name).read_text()) == signature(name, OPERATORS[name])


@pytest.mark.parametrize("name", OPERATORS)
def test_a_page_tells_what_each_parameter_of_its_operator_means(name: str) -> None:
    outside = re.sub(r"^```.*?^```", "", page_of(name).read_text(), flags=re.MULTILINE | re.DOTALL)
    missing = [each.name for each in parameters(OPERATORS[name]) if not _mentions(outside, each)]
    assert not missing, f"{page_of(name).name} says nothing of {', '.join(missing)}"


def _mentions(text: str, parameter: inspect.Parameter) -> bool:
    """Tell whether a text names a parameter as code, alone or with a value, or aggregates by that word."""
    if parameter.kind is parameter.VAR_KEYWORD:
        return re.search(r"\baggregates?\b", text) is not None
    named = rf"`[^`\n]*\b{parameter.name}\b[^`\n]*`"
    return re.search(named, text) is not None or (
        parameter.name in ("table", "right") and parameter.name in text
    )


def test_every_operator_has_a_page() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {
        *(page_of(each).stem for each in OPERATORS),
        "aggregates",
    }


def cells(page: str) -> set[str]:
    """Return the calls that stand in the first column of a page's tables."""
    rows = re.findall(r"^\| (`[^|]+) \|", (DOCS / page).read_text(), flags=re.MULTILINE)
    return {call for row in rows for call in re.findall(r"`([\w.]+\(.*?\))`", row)}


def aggregate_call(name: str) -> str:
    """Return how an aggregate is called, without the condition that all of them take."""
    call = signature(name, AGGREGATES[name]).removeprefix("agg.")
    assert "*, where=None)" in call
    return call.replace(", *, where=None)", ")")


@pytest.mark.parametrize("name", AGGREGATES)
def test_the_page_of_aggregates_shows_how_each_is_called(name: str) -> None:
    expected = aggregate_call(name)
    assert expected in cells("operators/aggregates.md"), f"aggregates.md has no row for `{expected}`"


@pytest.mark.parametrize("name", TARGETS)
def test_the_page_of_sinks_shows_how_each_target_is_called(name: str) -> None:
    expected = signature(name, TARGETS[name])
    assert expected in cells("sinks.md"), f"sinks.md has no row for `{expected}`"


@pytest.mark.parametrize("name", sorted(HARNESS.keys() - {"Harness"}))
def test_the_page_of_testing_shows_how_a_harness_is_called(name: str) -> None:
    expected = signature(name, HARNESS[name]).removeprefix("Harness.")
    assert expected in cells("testing.md"), f"testing.md has no row for `{expected}`"


def test_no_table_shows_a_call_that_there_is_not() -> None:
    there = {signature(name, call) for name, call in {**TARGETS, **HARNESS}.items()}
    known = {*map(aggregate_call, AGGREGATES), *(each.removeprefix("Harness.") for each in there)}
    for page in ("operators/aggregates.md", "testing.md"):
        assert not cells(page) - known, f"{page} shows {', '.join(cells(page) - known)}"
    shown = {each for each in cells("sinks.md") if each.startswith("targets.")}
    assert not shown - known, f"sinks.md shows {', '.join(shown - known)}"


DECLARED = ("Pipeline", "source", "table", "capture", "stream", "view", "sink", "sql")


@pytest.mark.parametrize("name", DECLARED)
def test_the_page_of_pipelines_shows_how_each_declaration_is_made(name: str) -> None:
    call = PIPELINE[name if name == "Pipeline" else f"Pipeline.{name}"]
    sections = re.split(r"^## ", (DOCS / "pipelines.md").read_text(), flags=re.MULTILINE)
    found = [each for each in sections if re.match(rf"`@?{name}\(", each)]
    assert len(found) == 1, f"pipelines.md has no section for {name}"
    heading, _, body = found[0].partition("\n")
    assert heading.strip("`@") == signature(name, call)
    missing = [each.name for each in parameters(call) if f"`{each.name}`" not in body]
    assert not missing, f"the section on {name} says nothing of {', '.join(missing)}"


def calls(page: Path) -> Iterator[tuple[str, ast.Call]]:
    """Return the calls of public functions in the Python examples of a page."""
    for block in PYTHON.findall(page.read_text()):
        try:
            tree = ast.parse(block)
        except SyntaxError:  # a session with >>>, or a line with an ellipsis
            continue
        for node in ast.walk(tree):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and name in PUBLIC:
                yield name, node


@pytest.mark.parametrize("page", [README, *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.stem)
def test_examples_use_parameters_that_there_are(page: Path) -> None:
    for name, call in calls(page):
        problem = misused(PUBLIC[name], call)
        assert problem is None, f"{page.name}: {ast.unparse(call)[:80]}: {problem}"


def misused(function: Callable[..., Any], call: ast.Call) -> str | None:
    """Return what Python would say if it were called so, or None."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(
        not each.arg for each in call.keywords
    ):
        return None
    try:
        inspect.Signature(parameters(function)).bind(
            *call.args, **{str(each.arg): each for each in call.keywords}
        )
    except TypeError as error:
        return str(error)
    return None


def test_a_wrong_example_would_be_found() -> None:
    (wrong,) = (
        node for node in ast.walk(ast.parse('dedup(on="id", during="1 hour")')) if isinstance(node, ast.Call)
    )
    assert misused(PUBLIC["dedup"], wrong) is not None
