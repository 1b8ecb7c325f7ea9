"""Programs out of Debian's packages, fetched and unpacked below ``.cache``, which needs no rights.

Where they come from is for the machine's own apt to know. Invariant: a folder of unpacked packages is whole,
or not there; several processes may ask for it at once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache"


class NoPackages(Exception):
    """There is no apt, or it could not fetch them; in one line."""


def unpacked(name: str, packages: Sequence[str]) -> Path:
    """Return the folder of some packages, ``.cache/NAME``, made if it is not there."""
    folder = CACHE / name
    if not folder.is_dir():
        _make(folder, packages)
    return folder


def with_dependencies(package: str) -> list[str]:
    """Return a package and those that it needs and this machine lacks."""
    simulated = _run("apt-get", "--simulate", "--no-install-recommends", "install", package)
    return re.findall(r"^Inst (\S+) ", simulated, re.MULTILINE)


def environment(folder: Path) -> dict[str, str]:
    """Return the variables with which programs find the libraries that came with them."""
    libraries = [*folder.glob("usr/lib/*-linux-gnu*"), *folder.glob("usr/lib/*-linux-gnu*/pulseaudio")]
    return {"LD_LIBRARY_PATH": ":".join(map(str, [*libraries, *folder.glob("lib/*-linux-gnu*")]))}


def _make(folder: Path, packages: Sequence[str]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        with tempfile.TemporaryDirectory(prefix="headwater-packages-") as fetched:
            _run("apt-get", "download", *packages, cwd=fetched)
            for each in sorted(Path(fetched).glob("*.deb")):
                _run("dpkg", "-x", str(each), str(draft))
        draft.chmod(0o755)
        os.rename(draft, folder)
    except OSError:  # another process was faster
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _run(program: str, *arguments: str, cwd: str | None = None) -> str:
    if shutil.which(program) is None:
        raise NoPackages(f"there is no {program} to fetch packages with")
    done = subprocess.run([program, *arguments], cwd=cwd, capture_output=True, text=True, errors="replace")
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise NoPackages(f"{program} could not fetch packages: {said[-1]}")
    return done.stdout
