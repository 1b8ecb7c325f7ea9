"""The topics of an embedded log: one directory each, declared by its ``topic.json``.

Plain files, so that a log in a read-only place can be read. Invariant: a topic's directory
appears and vanishes in one rename, and its declaration changes in one replace.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from headwater import durable, topic_errors
from headwater import schema as schemas
from headwater import topic as topics
from headwater.errors import DamagedLog, HeadwaterError, NotALog, TopicError, TopicExists
from headwater.log.embedded.failures import log_deleted, unusable
from headwater.topic import Topic

FORMAT = 1
MARKER = "headwater.json"
_OWN = re.compile(rf"topics|groups|state\.db.*|\.{re.escape(MARKER)}-.*", re.DOTALL)
"""What a log's directory may hold before its marker is there: several processes may be making it."""
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)
"""What reading a damaged declaration raises, beside errors of Headwater's own."""


class StoredTopic(NamedTuple):
    """A topic, and where it is stored."""

    topic: Topic
    directory: Path

    @property
    def id(self) -> str:
        """The topic's identity."""
        return self.topic.id

    def partition(self, number: int) -> Path:
        """Return a partition's directory."""
        return self.directory / str(number)


class EmbeddedCatalog:
    """Finds and changes the topics below a directory."""

    def __init__(self, root: Path):
        self.root = root
        self._cache: dict[str, tuple[tuple[int, int, int], StoredTopic]] = {}
        self._paths: dict[str, Path] = {}
        """Where topics are declared, of names that are fit to be paths."""
        self._seen = False
        """Whether a topic was found: a directory that has none any more, and is no log, was deleted."""
        self._check_marker()

    def get(self, name: str) -> StoredTopic:
        """Return a topic as it is declared now."""
        path = self._path(name)
        try:
            stat = os.stat(path)
            # A file that replaces another may get the number of the one before, within a tick of the clock.
            version = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            cached = self._cache.get(name)
            if cached is None or cached[0] != version:
                cached = self._cache[name] = (version, _load(path))
                self._seen = True
        except (FileNotFoundError, NotADirectoryError):
            raise self._missing(name, path) from None
        except OSError as error:
            raise unusable(self.root, error) from None
        return cached[1]

    def _path(self, name: str) -> Path:
        """Return where a topic is declared."""
        path = self._paths.get(name)
        if path is None:
            topics.check_name("topic", name)  # it becomes a path: "../other" must not
            path = self._paths[name] = self.root / "topics" / name / "topic.json"
        return path

    def names(self) -> list[str]:
        """Return the names of all topics."""
        try:
            entries = os.listdir(self.root / "topics")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unusable(self.root, error) from None
        visible = (name for name in entries if not name.startswith("."))
        return sorted(name for name in visible if self._is_topic(name))

    def add(self, topic: Topic) -> StoredTopic:
        """Make a topic's directory, whole or not at all."""
        with self._locked():
            directory = self.root / "topics" / topic.name
            if directory.exists():
                raise TopicExists(
                    f'topic "{topic.name}" exists already',
                    hint="use `headwater topic alter` to change it, or choose another name",
                )
            draft = self.root / "topics" / f".new-{uuid.uuid4().hex}"
            body = _declaration(replace(topic, id=uuid.uuid4().hex))
            for number in range(topic.partitions):
                _make_partition(draft / str(number))
            durable.write(draft / "topic.json", body)
            durable.replace(draft, directory)
        return self.get(topic.name)

    def alter(
        self,
        name: str,
        changes: dict[str, Any],
        growing: Callable[[StoredTopic], AbstractContextManager[None]],
    ) -> StoredTopic:
        """Alter a topic; new partitions are there before the declaration names them.

        ``growing`` is entered around the moment from which on records go to new partitions.
        """
        with self._locked():
            stored = self.get(name)
            new = topics.altered(stored.topic, **changes)
            body = _declaration(new)
            for number in range(stored.topic.partitions, new.partitions):
                _make_partition(stored.partition(number))
            more = new.partitions > stored.topic.partitions
            with growing(stored) if more else nullcontext():
                durable.write(stored.directory / "topic.json", body)
        return self.get(name)

    def remove(self, name: str) -> StoredTopic:
        """Delete a topic's directory; whoever has it open is told at the next append or read."""
        with ExitStack() as removing:
            with self._locked():
                stored = self.get(name)
                trash = self.root / "topics" / f".deleted-{uuid.uuid4().hex}"
                os.rename(stored.directory, trash)
                removing.enter_context(_claimed(trash))
                durable.sync(trash.parent)
            shutil.rmtree(trash)
        return stored

    def prepare(self) -> None:
        """Make the log's directory if it is not there yet."""
        try:
            durable.make(self.root, private=True)
            if not (self.root / MARKER).exists():
                durable.write(self.root / MARKER, orjson.dumps({"format": FORMAT}) + b"\n")
            durable.make(self.root / "topics", private=True)
        except FileExistsError:
            raise NotALog(f'"{self.root}" is a file, not a log directory') from None
        except OSError as error:
            raise unusable(self.root, error, "be written") from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.prepare()
        try:
            file = open(self.root / "topics" / ".lock", "w")
        except OSError as error:
            raise unusable(self.root, error, "be written") from None
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                self._sweep()
                yield
            except OSError as error:
                raise unusable(self.root, error, "be written") from None

    def _is_topic(self, name: str) -> bool:
        """Tell whether a directory is a topic's, also of one that has lost its declaration."""
        directory = self.root / "topics" / name
        return (directory / "topic.json").exists() or (directory / "0" / "head").exists()

    def _missing(self, name: str, path: Path) -> HeadwaterError:
        """Return the error for a topic without a declaration."""
        self._cache.pop(name, None)
        if self._seen and not (self.root / MARKER).exists():
            return log_deleted(self.root)
        if self._is_topic(name) and not path.exists():
            return _unreadable(path, "it is missing")
        return topic_errors.unknown(name, self.names())

    def _sweep(self) -> None:
        """Remove what killed processes have left; to be called with the lock held."""
        for left in (self.root / "topics").glob(".new-*"):
            shutil.rmtree(left, ignore_errors=True)
        for left in (self.root / "topics").glob(".deleted-*"):
            try:
                with _claimed(left):
                    shutil.rmtree(left, ignore_errors=True)
            except OSError:  # a living process is removing it, or has just done so
                continue

    def _check_marker(self) -> None:
        marker = self._marker()
        if marker is None:
            return
        format = marker.get("format") if isinstance(marker, dict) else None
        if not isinstance(format, int):
            raise NotALog(
                f'log "{self.root}" cannot be read', detail=f'"{self.root / MARKER}" does not name a format'
            )
        if format > FORMAT:
            raise NotALog(
                f'log "{self.root}" is of a newer format',
                detail=f"it has format {format}, this version reads up to {FORMAT}",
                hint="upgrade headwater",
            )

    def _marker(self) -> Any:
        """Return what the marker says, or None where a log has yet to be made."""
        try:
            return orjson.loads((self.root / MARKER).read_bytes())
        except NotADirectoryError:
            raise NotALog(f'"{self.root}" is a file, not a log directory') from None
        except FileNotFoundError:
            found = os.listdir(self.root) if self.root.is_dir() else []
            if all(map(_OWN.fullmatch, found)):
                return None
            if MARKER in found:  # it was written just now
                return self._marker()
        except OSError as error:
            raise unusable(self.root, error, "be read") from None
        except orjson.JSONDecodeError as error:
            raise NotALog(
                f'log "{self.root}" cannot be read', detail=f'"{self.root / MARKER}": {error}'
            ) from None
        raise NotALog(
            f'directory "{self.root}" is not a log',
            detail=f'it has files, but no "{MARKER}"',
            hint="name an empty or a new directory",
        )


def _make_partition(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    for name in ("lock", "head"):
        (path / name).touch()


@contextmanager
def _claimed(directory: Path) -> Iterator[None]:
    """Hold a directory that is being removed; ``OSError`` where another process holds it."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _declaration(topic: Topic) -> bytes:
    """Return a topic as it is stored; refuse one that would not be read back as it is."""
    body = {"id": topic.id, "name": topic.name, **topic.settings()}
    body["schemas"] = [schemas.ddl(s) for s in topic.schemas]
    try:
        text = orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n"
        if _read(text) == topic:
            return text
        reason = "it would not be read back as it is"
    except (*_UNREADABLE, HeadwaterError) as error:
        reason = str(error)
    raise TopicError(f'declaration of topic "{topic.name}" cannot be stored', detail=reason)


def _load(path: Path) -> StoredTopic:
    text = path.read_bytes()
    try:
        return StoredTopic(_read(text), path.parent)
    except (*_UNREADABLE, HeadwaterError) as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from None


def _unreadable(path: Path, reason: str) -> DamagedLog:
    return DamagedLog(
        f'declaration of topic "{path.parent.name}" cannot be read',
        detail=f'"{path}": {reason}',
        hint="restore the file from a copy; the records themselves are untouched",
        resume=None,
    )


def _read(text: bytes) -> Topic:
    body = orjson.loads(text)
    versions: list[pa.Schema] = [schemas.parse(each) for each in body.pop("schemas")]
    id, name = body.pop("id"), body.pop("name")
    topic = replace(topics.create(name, **body), schemas=tuple(versions), id=id)
    if not (isinstance(id, str) and id and topic.schemas):
        raise ValueError("it has no id or no schema")
    return topic
