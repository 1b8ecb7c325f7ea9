"""A location opens a directory or a prefix of a bucket."""

from __future__ import annotations

from pathlib import Path

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.files.opening import open_files
from headwater.engine.files.store_files import StoreFiles


def test_a_location_opens_what_has_it(tmp_path: Path) -> None:
    for location, kind in ((str(tmp_path), LocalFiles), ("s3://bucket/shop/state", StoreFiles)):
        files = open_files(location)
        assert isinstance(files, kind)
        assert files.location == location
