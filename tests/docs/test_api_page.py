"""``docs/api.md`` names everything that is public, and its examples run as they are printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headwater

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
CODE = set(re.findall(r"`([A-Za-z_]+)", PAGE))


@pytest.mark.parametrize("name", headwater.__all__)
def test_every_public_name_is_on_the_page_and_can_be_had(name: str) -> None:
    assert name in CODE
    assert getattr(headwater, name) is not None


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "api_page"}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"api.md, python block {number}", "exec"), names)
