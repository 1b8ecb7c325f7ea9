"""Scripts that Spark starts in the place of programs: where they are, and who may have written them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from headwater.engine.spark import launcher
from headwater.errors import HeadwaterError


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_script_is_where_only_its_user_writes(places: Path) -> None:
    path = launcher.write("java", "/opt/java", "#!/bin/sh\n")
    assert path.is_relative_to(places / "cache") and path.read_text() == "#!/bin/sh\n"
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, path.parent.parent)] == [
        0o700
    ] * 3
    assert launcher.write("java", "/opt/java", "#!/bin/sh\n# new\n") == path
    assert path.read_text().endswith("# new\n")


def test_who_has_no_place_for_it_has_a_temporary_one(places: Path) -> None:
    (places / "cache").write_text("no directory")
    path = launcher.write("java", "/opt/java", "#!/bin/sh\n")
    assert path.parent.parent.parent == places


@pytest.mark.parametrize("trick", ["a link", "open to all"])
def test_a_place_that_others_can_write_to_is_refused(places: Path, trick: str) -> None:
    own = launcher.write("java", "/opt/java", "#!/bin/sh\n").parent.parent
    if trick == "a link":
        own.rename(places / "elsewhere")
        own.symlink_to(places / "elsewhere")
    else:
        own.chmod(0o777)
    with pytest.raises(HeadwaterError, match="may be written to by another user"):
        launcher.write("java", "/opt/java", "#!/bin/sh\n")
