"""The README's Python examples run as they are printed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

README = Path(__file__).parents[2] / "README.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", README.read_text(), flags=re.MULTILINE | re.DOTALL)


def test_the_readme_has_a_python_example() -> None:
    assert blocks()


def test_the_examples_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in one place, as a reader would try them."""
    monkeypatch.chdir(tmp_path)
    module = ModuleType("readme")
    monkeypatch.setitem(sys.modules, "readme", module)  # dataclasses look up their module
    for number, block in enumerate(blocks(), start=1):
        exec(compile(block, f"README.md, python block {number}", "exec"), vars(module))
