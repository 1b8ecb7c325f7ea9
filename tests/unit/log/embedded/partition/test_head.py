"""The head of a partition: read as it was written, and not at all where it is torn."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.log.embedded.partition import head
from headwater.log.embedded.partition.head import Head

HEAD = Head(segment=3, size=4_000, end=17, received=1_700_000_000_000_000)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "head", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


def memory_file() -> int:
    return os.memfd_create("head")


@given(st.builds(Head, *[st.integers(-(2**63), 2**63 - 1)] * 4), st.booleans())
def test_a_head_is_read_as_it_was_written(written: Head, synced: bool) -> None:
    file = memory_file()
    try:
        head.write(file, Head(0, 0, 0, 0), not synced)
        head.write(file, written, synced)
        assert head.read(file) == head.WrittenHead(written, synced, since_boot=True)
    finally:
        os.close(file)


def test_a_head_with_any_byte_changed_or_missing_is_none(file: int) -> None:
    assert head.read(file) is None
    head.write(file, HEAD, synced=True)
    data = os.pread(file, 1000, 0)
    for place in range(len(data)):
        os.pwrite(file, bytes([data[place] ^ 0x40]), place)
        assert head.read(file) is None
        os.pwrite(file, data[place : place + 1], place)
    os.ftruncate(file, len(data) - 1)
    assert head.read(file) is None


@pytest.mark.parametrize("synced", [True, False])
def test_after_another_start_of_the_machine_only_a_synced_head_is_sure(
    file: int, synced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    head.write(file, HEAD, synced)
    found = head.read(file)
    assert found is not None
    assert found.sure
    monkeypatch.setattr(head, "BOOT", bytes(16))
    found = head.read(file)
    assert found is not None
    assert (found.head, found.since_boot, found.sure) == (HEAD, False, synced)


def test_a_run_of_the_machine_has_one_identity() -> None:
    assert head.boot() == head.boot()
    assert len(head.boot()) == 16


@pytest.mark.parametrize(("data", "blank"), [(None, True), (b"", True), (bytes(60), True), (b"\0\1", False)])
def test_nothing_was_acknowledged_where_no_head_has_reached_the_disk(
    tmp_path: Path, data: bytes | None, blank: bool
) -> None:
    if data is not None:
        (tmp_path / "head").write_bytes(data)
    assert head.blank(tmp_path / "head") == blank
