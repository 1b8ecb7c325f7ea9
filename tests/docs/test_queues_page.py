"""The examples of ``docs/queues.md`` run as they are printed, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "queues.md").read_text()


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "queues_page"}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"queues.md, python block {number}", "exec"), names)
    names["log"].close()  # type: ignore[attr-defined]
