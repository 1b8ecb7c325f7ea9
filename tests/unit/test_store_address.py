"""Addresses of homes in a store: what they say, and that no secret is in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import UsageError
from headwater.store_address import StoreAddress, is_store, working_folder


@pytest.mark.parametrize(
    "url", ["s3://bucket/shop", "s3://bucket/a/b?endpoint=http://127.0.0.1:9000&region=eu-west-1"]
)
def test_an_address_is_written_as_it_was_read(url: str) -> None:
    assert str(StoreAddress.parse(url)) == url


@pytest.mark.parametrize(
    "url", ["s3://bucket", "s3:///shop", "gs://bucket/shop", "s3://b/p?secret=x", "s3://b/p#f"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="is no address of a pipeline's home"):
        StoreAddress.parse(url)


def test_credentials_are_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        StoreAddress.parse("s3://key:wonderland@bucket/shop")
    assert "wonderland" not in str(caught.value)


def test_the_environment_says_what_the_address_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store:9000")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    resolved = StoreAddress.parse("s3://bucket/shop?region=eu-north-1").resolved()
    assert (resolved.endpoint, resolved.region) == ("http://store:9000", "eu-north-1")


def test_a_path_is_no_address() -> None:
    assert is_store("s3://bucket/shop")
    assert not is_store("./data")
    assert not is_store(Path("data"))
    assert not is_store(None)


def test_an_address_that_became_a_path_is_refused_and_no_directory() -> None:
    assert is_store(Path("s3://bucket/shop"))
    with pytest.raises(UsageError):
        StoreAddress.parse(str(Path("s3://bucket/shop")))


def test_each_address_has_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folders = {working_folder(StoreAddress.parse(f"s3://bucket/{name}")) for name in ("a", "b")}
    assert {folder.parent for folder in folders} == {tmp_path / "headwater" / "homes"}
    assert len(folders) == 2
