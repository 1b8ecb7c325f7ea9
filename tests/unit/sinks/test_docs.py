"""The examples of the pages about sinks and views run as they are printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["views.md", "sinks.md"])
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in one place, as a reader would try them."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    assert blocks
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"{page}, python block {number}", "exec"), names)


@pytest.mark.slow
def test_the_test_of_a_sink_passes_as_it_is_printed(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / "testing.md").read_text(), re.MULTILINE | re.DOTALL)
    (printed,) = (block for block in blocks if "sink_suite" in block)
    (tmp_path / "test_printed.py").write_text(printed)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_printed.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout
    assert "11 passed" in done.stdout
