"""``docs/architecture.md`` draws the house as it is: every module and folder once, and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "headwater"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
NAME = re.compile(r"(?:[a-z_]+\.py|[a-z_]+/)(?= |$)")
PATH = re.compile(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`(?: \(`([a-z_]+)`)?")


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def lines() -> list[str]:
    tree = section("The tree").split("```\nsrc/headwater/\n")[1].split("\nexamples/")[0]
    return [line for line in tree.splitlines() if line]


def drawn() -> list[Path]:
    """Return the paths of the tree: what is in a folder follows it, two spaces further in."""
    folders, found = {0: Path()}, []
    for line in lines():
        depth = (len(line) - len(line.lstrip())) // 2
        for name in names(line):
            found.append(folders[depth - 1] / name)
            if name.endswith("/"):
                folders[depth] = found[-1]
    return found


def names(line: str) -> list[str]:
    """Return the names with which a line begins; what follows is what they are for."""
    found = []
    for word in line.split():
        if not NAME.fullmatch(word):
            break
        found.append(word)
    assert found, f"a line of the tree that names nothing: {line}"
    return found


def in_the_source() -> list[Path]:
    """Return what there is: modules and folders, of which a folder's line stands for its ``__init__.py``."""
    modules = [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    folders = [path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE]
    return [path.relative_to(SOURCE) for path in [*modules, *folders, SOURCE / "__init__.py"]]


def test_every_module_and_folder_is_drawn() -> None:
    assert sorted(map(str, set(in_the_source()) - set(drawn()))) == []


def test_nothing_is_drawn_that_is_not_there() -> None:
    assert sorted(map(str, set(drawn()) - set(in_the_source()))) == []


def test_nothing_is_drawn_twice() -> None:
    assert [str(path) for path, times in Counter(drawn()).items() if times > 1] == []


def test_a_line_of_the_tree_says_what_its_modules_are_for() -> None:
    assert [line for line in lines() if not line.split()[len(names(line)) :]] == []


@pytest.mark.parametrize(("path", "function"), PATH.findall(section("Where is …")))
def test_a_path_that_the_page_points_to_is_there(path: str, function: str) -> None:
    assert (SOURCE / path).exists()
    if function:
        assert f"def {function}(" in (SOURCE / path).read_text()
