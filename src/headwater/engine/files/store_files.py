"""The files of a state in an object store: put once, fetched once by each machine, and sealed.

A file is known by its random name, and its bytes by their seal, so a put that is retried, an answer that is
lost and a body that is cut harm nothing. What is to be mapped is written on this machine's own
disk first, where it stays as if it had been fetched. A list is put under a condition; where that is refused,
what is there may be this very list, whose answer was lost.

Invariant: what is returned is to the byte what was put; of two who commit a list of one name, one is told so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

import pyarrow as pa
from pyarrow import fs

from headwater.engine.files import seal, store_clients
from headwater.engine.files.fetched_files import FetchedFiles, default_folder, default_limit, fetched_files
from headwater.engine.files.store_calls import retried
from headwater.engine.home.notes import damaged
from headwater.errors import SinkRefused
from headwater.operators.memory.run import Stretch
from headwater.store_address import StoreAddress

T = TypeVar("T")


@dataclass(frozen=True)
class StoreFiles:
    """A prefix of a bucket; it travels to workers as its address."""

    address: StoreAddress

    @property
    def location(self) -> str:
        """The address."""
        return str(self.address)

    def make(self) -> None:
        """Refuse a server that does not know conditions: there, two runners would not notice each other."""
        name = "conditional"
        self.commit(name, b"put once")
        if self.commit(name, b"put twice"):
            raise SinkRefused(
                f'store "{self.location}" has no conditional put',
                detail="it has put an object under a name that was taken, though it was asked not to",
                hint="use a server that honours If-None-Match, as Amazon S3 does",
            )

    def sizes(self) -> dict[str, int]:
        """Return the objects of the prefix, each with its bytes before the seal."""
        selector = fs.FileSelector(self._path(), allow_not_found=True)
        found = self._retried("", lambda: self._system.get_file_info(selector))
        files = (each for each in found if each.type == fs.FileType.File)
        return {each.base_name: each.size - seal.SEAL_BYTES for each in files}

    def create(self, name: str, data: bytes) -> None:
        """Put an object."""
        self._retried(name, partial(self._put, name, lambda write: write(seal.sealed(data))))

    def create_mapped(self, name: str, write: Callable[[pa.NativeFile], None]) -> int:
        """Let a function write a file on this machine's disk, and put it."""
        size = self._fetched.add(self._key(name), write)
        self._fetched.use(self._key(name), partial(self._fetch, name), partial(self._put_file, name))
        return size

    def read(self, stretch: Stretch) -> bytes:
        """Return a stretch of an object, fetched whole if it is not here."""
        return self._fetched_as(stretch.file, lambda path: _stretch(path, stretch))

    def map(self, name: str) -> pa.NativeFile:
        """Map an object, fetched if it is not here."""
        return self._fetched_as(name, lambda path: pa.memory_map(str(path)))

    def commit(self, name: str, data: bytes) -> bool:
        """Put a list if none has its name; one that is there may be this one, put by an earlier attempt."""
        body = seal.sealed(data)
        put = partial(store_clients.put_if_absent, self.address.resolved(), name, body)
        return self._retried(name, put) or self.listed(name) == data

    def listed(self, name: str) -> bytes:
        """Return a list."""
        return self._retried(name, partial(self._get, name))

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects, and what was fetched of them."""
        gone = list(names)
        if gone:
            self._retried("", partial(store_clients.remove, self.address.resolved(), gone))
        for name in gone:
            self._fetched.discard(self._key(name))

    @property
    def _system(self) -> fs.S3FileSystem:
        address = self.address.resolved()
        return store_clients.file_system(address.endpoint, address.region)

    @property
    def _fetched(self) -> FetchedFiles:
        return fetched_files(default_folder(), default_limit())

    def _key(self, name: str) -> str:
        """Return by what a file is known among those that were fetched from anywhere."""
        return f"{hashlib.sha256(self.location.encode()).hexdigest()[:16]}-{name}"

    def _path(self, *names: str) -> str:
        return "/".join([self.address.bucket, self.address.prefix, *names])

    def _retried(self, name: str, call: Callable[[], T]) -> T:
        place = str(self.address.below(name)) if name else self.location
        return retried(place, call, store_clients.failures())

    def _fetched_as(self, name: str, use: Callable[[Path], T]) -> T:
        try:
            return self._fetched.use(self._key(name), partial(self._fetch, name), use)
        except FileNotFoundError:
            raise damaged(str(self.address.below(name)), "it is missing") from None

    def _fetch(self, name: str, file: BinaryIO) -> None:
        def fetch() -> None:
            file.seek(0)
            file.truncate()
            with self._system.open_input_stream(self._path(name)) as source:
                seal.copy_unsealed(source.read, file)

        self._retried(name, fetch)

    def _get(self, name: str) -> bytes:
        with self._system.open_input_stream(self._path(name)) as source:
            return seal.unsealed(source.read())

    def _put(self, name: str, write: Callable[[Callable[[bytes], object]], object]) -> None:
        with self._system.open_output_stream(self._path(name)) as sink:
            write(sink.write)

    def _put_file(self, name: str, path: Path) -> None:
        def put() -> None:
            with open(path, "rb") as file:
                self._put(name, partial(seal.copy_sealed, file))

        self._retried(name, put)


def _stretch(path: Path, stretch: Stretch) -> bytes:
    with open(path, "rb") as file:
        file.seek(stretch.at)
        return file.read(stretch.size)
