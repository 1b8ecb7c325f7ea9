"""``help()`` of what users call is enough: each parameter with its default, the contract, an example.

Parameters are items of a list, as in the signature: ``- ``late="drop"``: what a late row does``. The examples
themselves run as doctests of ``src``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import headwater
from docs.public_calls import OPERATORS, PUBLIC, parameter_texts
from headwater import sourcing
from headwater.testing.harness import Harness

CLASSES = (headwater.Pipeline, headwater.Log, headwater.Producer, headwater.Consumer, Harness)
CONTRACT = ("Out:", "Order:", "Late:", "State:", "Restart:")
WITHOUT_EXAMPLE = {f"Harness.{name}" for name in vars(Harness)}
"""They need Spark; ``docs/testing.md`` has them in a test that runs."""


def listed(call: Callable[..., Any]) -> list[str]:
    return re.findall(r"^\s*- ``(.+?)``:", inspect.getdoc(call) or "", flags=re.MULTILINE)


@pytest.mark.parametrize("name", PUBLIC)
def test_help_lists_each_parameter_with_its_default_and_no_other(name: str) -> None:
    expected, found = parameter_texts(PUBLIC[name]), listed(PUBLIC[name])
    assert found == expected, (
        f"the docstring of {name} lists {found or 'no parameters'}, and its signature has {expected}: "
        "write an item ``- ``name=default``: meaning`` for each, in their order"
    )


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - WITHOUT_EXAMPLE))
def test_help_has_an_example_that_runs(name: str) -> None:
    owner, _, method = name.rpartition(".")
    known = {**vars(sourcing), **{each: getattr(headwater, each) for each in headwater.__all__}}
    of_class = inspect.getdoc(known[owner]) if owner in known else ""
    examples = "\n".join(_examples(inspect.getdoc(PUBLIC[name]) or ""))
    shown = examples or [line for line in _examples(of_class or "") if f".{method}(" in line]
    assert shown, f"the docstring of {name} has no example, nor has that of its class one that calls it"


def _examples(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line.lstrip().startswith((">>>", "...")))


@pytest.mark.parametrize("name", OPERATORS)
def test_help_of_an_operator_tells_its_contract(name: str) -> None:
    text = inspect.getdoc(OPERATORS[name]) or ""
    missing = [part for part in CONTRACT if not re.search(rf"^{part}", text, flags=re.MULTILINE)]
    assert not missing, f"the docstring of {name} does not say {', '.join(missing)}"


@pytest.mark.parametrize("name", PUBLIC)
def test_help_begins_with_one_sentence(name: str) -> None:
    first = (inspect.getdoc(PUBLIC[name]) or "").split("\n\n")[0]
    assert re.fullmatch(r"[A-Z].*[.]", first), f"the docstring of {name} begins with {first!r}"


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_has_a_type(name: str) -> None:
    bare = [
        each.name
        for each in inspect.signature(PUBLIC[name]).parameters.values()
        if each.annotation is each.empty and each.name != "self"
    ]
    assert not bare, f"{name} has parameters without a type: {', '.join(bare)}"


@pytest.mark.parametrize("kind", CLASSES)
def test_every_public_method_is_among_what_is_checked(kind: type) -> None:
    methods = {name for name, each in vars(kind).items() if name[0] != "_" and inspect.isfunction(each)}
    missing = [name for name in methods if f"{kind.__name__}.{name}" not in PUBLIC]
    assert not missing, f"{kind.__name__} has methods that no test of help() knows: {', '.join(missing)}"
