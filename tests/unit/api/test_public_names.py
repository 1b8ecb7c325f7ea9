"""The public names: cheap to import, and found where they are said to be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import headwater


def test_the_package_is_cheap_to_import() -> None:
    code = "import sys, headwater; print(len([n for n in sys.modules if n.startswith('headwater')]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "1", "each process of Spark's imports it, and needs few of its names"


def test_all_names_are_had_without_pyspark() -> None:
    code = "import sys, headwater\nfor name in headwater.__all__:\n    getattr(headwater, name)\n"
    code += "    assert 'pyspark' not in sys.modules, name"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_type_checkers_see_the_names_that_there_are() -> None:
    tree = ast.parse(Path(str(headwater.__file__)).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname or alias.name for node in imports for alias in node.names}
    assert sorted(seen) == sorted(headwater.__all__)


def test_another_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        headwater.nothing  # noqa: B018
