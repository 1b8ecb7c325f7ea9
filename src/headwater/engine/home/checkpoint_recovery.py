"""What a power loss or a kill may leave of a query's checkpoint, made good before Spark reads it.

Spark writes its files whole, but syncs none of them: after a power loss one may be empty, or end in
the middle. Nobody has acted on a plan that is not whole, as the plan is synced first; a micro-batch
whose completion is not noted is repeated, and changes nothing; an identifier can be a new one. A kill
may leave a file under the name that it had while it was written: Spark refuses to begin beside such a one.

Invariant: only what nobody relies on is removed; anything else that cannot be read is refused.
"""

from __future__ import annotations

import json
from pathlib import Path

from headwater import durable
from headwater.engine.home import checkpoint, notes
from headwater.engine.home.checkpoint import InputProgress
from headwater.errors import HeadwaterError


def recover(path: Path) -> None:
    """Remove what was left half written in a checkpoint, before its query starts."""
    durable.sweep(path)
    for commit in (path / "commits").glob("[0-9]*"):
        if not _is_commit(commit):
            commit.unlink()
    last = checkpoint.last_batch(path)
    if last > checkpoint.last_done(path) and not _is_planned(path, last):
        checkpoint.offsets_file(path, last).unlink()
    _remove_unfinished(path)
    if not _is_identified(path / "metadata"):
        checkpoint.assign_new_id(path)
    _check_plans(path)


def _remove_unfinished(path: Path) -> None:
    """Remove hidden files: those that were being written, and checksums of files that are gone."""
    for file in (file for folder in ("offsets", "commits") for file in (path / folder).glob(".*")):
        if not file.with_name(file.name.removeprefix(".").removesuffix(".crc")).exists():
            file.unlink(missing_ok=True)


def _check_plans(path: Path) -> None:
    """Refuse a checkpoint in which a plan is missing or damaged that the next micro-batch needs."""
    last = checkpoint.last_batch(path)
    for batch in range(max(last - 1, 0), last + 1):
        _planned(path, batch)


def _is_commit(path: Path) -> bool:
    """Tell whether a note that a micro-batch is done is whole: a version, and one line of JSON."""
    _, *lines = path.read_bytes().splitlines() or [b""]
    return len(lines) == 1 and _is_json(lines[0])


def _is_planned(path: Path, batch: int) -> bool:
    """Tell whether a plan is whole: all inputs are in one line of JSON."""
    try:
        checkpoint.input_progress(path, batch)
    except HeadwaterError:
        return False
    return True


def _planned(path: Path, batch: int) -> InputProgress:
    try:
        return checkpoint.input_progress(path, batch)
    except FileNotFoundError:
        raise notes.damaged(checkpoint.offsets_file(path, batch), "it is missing") from None


def _is_identified(path: Path) -> bool:
    return path.exists() and _is_json(path.read_bytes())


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
