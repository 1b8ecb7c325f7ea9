"""Every file and folder that ``docs/architecture.md`` lists is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def listed() -> list[Path]:
    """Return the paths of the tree below ``src/headwater/``: what is in a folder follows it, further in."""
    tree = PAGE.split("```\nsrc/headwater/\n")[1].split("\nexamples/")[0]
    found, folders = [], {0: Path("src/headwater")}
    for line in tree.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        for name in re.findall(r"(?:(?<=  )|^)[a-z_]+(?:\.py|/)(?= |$)", line):
            path = folders[depth - 1] / name
            found.append(path)
            if name.endswith("/"):
                folders[depth] = path
    return found


@pytest.mark.parametrize("path", listed(), ids=str)
def test_what_the_page_lists_is_there(path: Path) -> None:
    assert (ROOT / path).exists()
