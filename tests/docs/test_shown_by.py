"""What the documentation names as what shows a claim is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATH = re.compile(r"`((?:tests|bench|src|examples|tools)/[\w./-]+)`")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    assert [path for path in PATH.findall(page.read_text()) if not (ROOT / path).exists()] == []
