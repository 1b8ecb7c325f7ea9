"""``headwater rescale``: what is refused before Spark is started, and what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import headwater
from headwater import Rescaled
from headwater.cli import main


def test_it_tells_from_how_many_to_how_many(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rescale(pipeline: Any, node: str, buckets: int, **where: Any) -> Rescaled:
        where["report"](1, 2)
        return Rescaled(node, 2, buckets)

    monkeypatch.setattr(headwater, "rescale", rescale)
    done = CliRunner().invoke(main, ["rescale", str(file), "seen", "16"])
    assert done.output == 'rescaled view "seen" from 2 to 16 buckets\n'


@pytest.mark.parametrize(
    ("node", "count", "said"),
    [
        ("orders", "4", 'source "orders" has no buckets'),
        ("seen", "257", 'view "seen" cannot have 257 buckets'),
        ("nobody", "4", "nobody"),
        ("seen", "many", "many"),
    ],
)
def test_what_cannot_be_rescaled_is_refused(file: Path, node: str, count: str, said: str) -> None:
    done = CliRunner().invoke(main, ["rescale", str(file), node, count])
    assert done.exit_code != 0
    assert said in done.output + str(done.exception)
