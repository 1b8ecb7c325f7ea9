"""A stream that goes on where its descriptor is lent to something else."""

from __future__ import annotations

import io
import os
from pathlib import Path

from headwater.cli.screens.terminal import duplicated


def test_a_console_writes_where_its_stream_did_whatever_becomes_of_the_descriptor(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    with open(ours, "w") as stream, open(theirs, "w") as other, duplicated(stream) as console:
        os.dup2(other.fileno(), stream.fileno())
        os.write(stream.fileno(), b"from Java\n")
        console.print("from here")
    assert ours.read_text() == "from here\n"
    assert theirs.read_text() == "from Java\n"


def test_a_stream_without_a_descriptor_is_written_to_itself() -> None:
    stream = io.StringIO()
    with duplicated(stream) as console:
        console.print("12 rows")
    assert stream.getvalue() == "12 rows\n"
    assert not stream.closed


def test_the_stream_itself_stays_open(tmp_path: Path) -> None:
    with open(tmp_path / "ours", "w") as stream:
        with duplicated(stream) as console:
            console.print("one")
        print("two", file=stream)
    assert (tmp_path / "ours").read_text() == "one\ntwo\n"
