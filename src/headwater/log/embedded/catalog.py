"""The topics of an embedded log: one directory each, declared by its ``topic.json``.

Plain files, so that a log in a read-only place can be read. Invariant: a topic's directory
appears and vanishes in one rename, and its declaration changes in one replace.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from headwater import schema as schemas
from headwater.errors import LogUnavailable, NotALog, TopicExists
from headwater.log import topic as topics
from headwater.log.embedded.partition import sync_directory
from headwater.log.topic import Topic

FORMAT = 1
MARKER = "headwater.json"


class Stored(NamedTuple):
    """A topic as it is stored, with an identity that a later topic of the same name has not."""

    topic: Topic
    id: str
    directory: Path

    def partition(self, number: int) -> Path:
        """Return a partition's directory."""
        return self.directory / str(number)


class Catalog:
    """Finds and changes the topics below a directory."""

    def __init__(self, root: Path):
        self.root = root
        self._cache: dict[str, tuple[tuple[int, int], Stored]] = {}
        self._check_marker()

    def get(self, name: str) -> Stored:
        """Return a topic as it is declared now."""
        path = self.root / "topics" / name / "topic.json"
        try:
            stat = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            raise topics.unknown(name, self.names()) from None
        version = (stat.st_ino, stat.st_mtime_ns)
        cached = self._cache.get(name)
        if cached is None or cached[0] != version:
            cached = self._cache[name] = (version, _load(path))
        return cached[1]

    def names(self) -> list[str]:
        """Return the names of all topics."""
        try:
            found = os.listdir(self.root / "topics")
        except FileNotFoundError:
            return []
        return sorted(name for name in found if not name.startswith("."))

    def add(self, topic: Topic) -> Stored:
        """Make a topic's directory, whole or not at all."""
        with self._locked():
            place = self.root / "topics" / topic.name
            if place.exists():
                raise TopicExists(
                    f'topic "{topic.name}" exists already',
                    hint="use `headwater topic alter` to change it, or choose another name",
                )
            draft = self.root / "topics" / f".new-{uuid.uuid4().hex}"
            for number in range(topic.partitions):
                _make_partition(draft / str(number))
            _save(draft, topic, uuid.uuid4().hex)
            os.rename(draft, place)
            sync_directory(place.parent)
        return self.get(topic.name)

    def change(self, name: str, changes: dict[str, Any]) -> Stored:
        """Alter a topic; new partitions are there before the declaration names them."""
        with self._locked():
            stored = self.get(name)
            new = topics.altered(stored.topic, **changes)
            for number in range(stored.topic.partitions, new.partitions):
                _make_partition(stored.partition(number))
            _save(stored.directory, new, stored.id)
        return self.get(name)

    def remove(self, name: str) -> Stored:
        """Delete a topic's directory; whoever has it open is told at the next append or read."""
        with self._locked():
            stored = self.get(name)
            gone = self.root / "topics" / f".deleted-{uuid.uuid4().hex}"
            os.rename(stored.directory, gone)
            sync_directory(gone.parent)
        shutil.rmtree(gone)
        return stored

    def prepare(self) -> None:
        """Make the log's directory if it is not there yet."""
        try:
            (self.root / "topics").mkdir(parents=True, exist_ok=True)
            if not (self.root / MARKER).exists():
                _replace(self.root / MARKER, orjson.dumps({"format": FORMAT}) + b"\n")
        except FileExistsError:
            raise NotALog(f'"{self.root}" is a file, not a log directory') from None
        except OSError as error:
            raise unwritable(self.root, error) from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.prepare()
        try:
            file = open(self.root / "topics" / ".lock", "w")
        except OSError as error:
            raise unwritable(self.root, error) from None
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                for left in (self.root / "topics").glob(".new-*"):  # of a process that was killed
                    shutil.rmtree(left, ignore_errors=True)
                yield
            except OSError as error:
                raise unwritable(self.root, error) from None

    def _check_marker(self) -> None:
        if self.root.exists() and not self.root.is_dir():
            raise NotALog(f'"{self.root}" is a file, not a log directory')
        try:
            marker = orjson.loads((self.root / MARKER).read_bytes())
        except FileNotFoundError:
            if self.root.is_dir() and any(self.root.iterdir()):
                raise NotALog(
                    f'directory "{self.root}" is not a log',
                    detail=f'it has files, but no "{MARKER}"',
                    hint="name an empty or a new directory",
                ) from None
            return
        except (OSError, orjson.JSONDecodeError) as error:
            raise NotALog(f'log "{self.root}" cannot be read', detail=str(error)) from None
        if marker.get("format", 0) > FORMAT:
            raise NotALog(
                f'log "{self.root}" is of a newer format',
                detail=f"it has format {marker['format']}, this version reads up to {FORMAT}",
                hint="upgrade headwater",
            )


def unwritable(root: Path, error: OSError) -> LogUnavailable:
    """Return the error for a log that may not be changed."""
    return LogUnavailable(
        f'log "{root}" cannot be written',
        detail=error.strerror,
        hint="check the disk and the directory's owner and permissions",
    )


def _make_partition(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    for name in ("lock", "head"):
        (path / name).touch()


def _save(directory: Path, topic: Topic, id: str) -> None:
    body = {"id": id, "name": topic.name, **topic.settings()}
    body["schemas"] = [schemas.ddl(s) for s in topic.schemas]
    _replace(directory / "topic.json", orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")


def _load(path: Path) -> Stored:
    body = orjson.loads(path.read_bytes())
    versions: list[pa.Schema] = [schemas.parse(text) for text in body.pop("schemas")]
    id, name = body.pop("id"), body.pop("name")
    topic = topics.create(name, **body)
    return Stored(replace(topic, schemas=tuple(versions)), id, path.parent)


def _replace(path: Path, data: bytes) -> None:
    """Write a file durably, in one replace."""
    draft = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    with open(draft, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    sync_directory(path.parent)
