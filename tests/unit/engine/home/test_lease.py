"""Of two runners of a pipeline the one that came last goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.engine.home.lease import Lease
from headwater.errors import Fenced, HeadwaterError


def taken(home: Path) -> Lease:
    lease = Lease(home)
    lease.take()
    return lease


def test_the_newest_runner_goes_on_and_the_one_before_is_fenced(tmp_path: Path) -> None:
    older, newer = taken(tmp_path), taken(tmp_path)
    newer.check()
    with pytest.raises(Fenced, match="another runner has taken over"):
        older.check()


def test_a_runner_that_was_replaced_does_not_take_the_pipeline_back(tmp_path: Path) -> None:
    older, newer = taken(tmp_path), taken(tmp_path)
    older.take()
    newer.check()
    with pytest.raises(Fenced):
        older.check()


def test_who_never_took_a_lease_is_not_held_to_one(tmp_path: Path) -> None:
    taken(tmp_path)
    Lease(tmp_path).check()


def test_a_lease_whose_file_is_gone_is_refused(tmp_path: Path) -> None:
    lease = taken(tmp_path)
    (tmp_path / "runner.json").unlink()
    with pytest.raises(HeadwaterError):
        lease.check()
