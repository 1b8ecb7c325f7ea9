"""The first example of ``docs/sourcing.md`` runs as it is printed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "sourcing.md").read_text()


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)[0]
    module = ModuleType("sourcing_page")
    monkeypatch.setitem(sys.modules, "sourcing_page", module)  # dataclasses look up their module
    exec(compile(first, "sourcing.md", "exec"), vars(module))
