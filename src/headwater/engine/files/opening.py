"""Opens the files of a state where they are. Invariant: a location opens the same files in any process."""

from __future__ import annotations

from pathlib import Path

from headwater.engine.files.home_files import HomeFiles
from headwater.engine.files.local_files import LocalFiles
from headwater.engine.files.store_files import StoreFiles
from headwater.store_address import StoreAddress, is_store


def open_files(location: str) -> HomeFiles:
    """Return the files of a directory, or of an address in a store."""
    return StoreFiles(StoreAddress.parse(location)) if is_store(location) else LocalFiles(Path(location))
