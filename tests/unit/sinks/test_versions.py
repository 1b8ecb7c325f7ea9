"""Versions of a target are made when they are asked for; each kind has its own test of the same name."""

from __future__ import annotations

from pathlib import Path

import follower_kit
import versions_kit
from headwater.sinks.versions import LateVersions, TargetVersions


def test_versions_that_are_made_late_do_what_the_others_do(tmp_path: Path) -> None:
    follower, made = follower_kit.sqlite_table(tmp_path), list[bool]()

    def make() -> TargetVersions:
        made.append(True)
        return versions_kit.versions_of(follower)

    late = LateVersions(make)
    assert not made
    versions_kit.write(follower, 1, versions_kit.OLD)
    late.prepare(2)
    with late.open(versions_kit.SCHEMA, 2) as sink:
        sink.begin()
    late.publish(versions_kit.SCHEMA, 2)
    assert (late.published(), dict(follower.held())) == (2, {})
