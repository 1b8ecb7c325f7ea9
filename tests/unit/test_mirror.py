"""Tests lie in the same tree as the code: a module that does something has a test file of its name.

``src/headwater/ROOM/MODULE.py`` has ``tests/KIND/ROOM/test_MODULE.py``, of one kind at least. What goes
through several modules has a file of another name beside them.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "headwater"
KINDS = ("unit", "spark", "contract", "integration")
FOLDERS = sorted({path.parent for path in (ROOT / "tests").rglob("*.py")})
FILES_IN_A_FOLDER = 24


def with_behaviour() -> set[str]:
    """Return the modules that have functions or classes of their own."""
    paths = [path for path in SOURCE.rglob("*.py") if not path.name.startswith("__")]
    return {path.relative_to(SOURCE).as_posix() for path in paths if _does_something(path)}


def _does_something(path: Path) -> bool:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return any(isinstance(node, kinds) for node in ast.parse(path.read_text()).body)


def covered() -> set[str]:
    """Return the modules, as their test files have them."""
    paths = [path.relative_to(ROOT / "tests" / kind) for kind in KINDS for path in _tests(kind)]
    return {path.with_name(path.name.removeprefix("test_")).as_posix() for path in paths}


def _tests(kind: str) -> list[Path]:
    return list((ROOT / "tests" / kind).rglob("test_*.py"))


def test_a_module_that_does_something_has_a_test_file_of_its_name() -> None:
    assert sorted(with_behaviour() - covered()) == []


def test_a_test_file_lies_in_a_room_of_the_code() -> None:
    rooms = {path.parent.relative_to(SOURCE) for path in SOURCE.rglob("__init__.py")} | {Path("examples")}
    paths = [path.relative_to(ROOT / "tests" / kind) for kind in KINDS for path in _tests(kind)]
    assert sorted(str(path) for path in paths if path.parent not in rooms) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_room_of_tests_is_not_crowded(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= FILES_IN_A_FOLDER
