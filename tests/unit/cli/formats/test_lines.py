from __future__ import annotations

import io
import os
import pty
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cli.formats import lines
from headwater.cli.formats.lines import chunks


def test_lines_are_numbered_and_blank_ones_left_out() -> None:
    [chunk] = list(chunks(io.BytesIO(b"a\n\n  \nb\n")))
    assert (chunk.values, chunk.lines) == ([b"a", b"b"], [1, 4])


def test_the_last_line_needs_no_newline() -> None:
    found = [value for chunk in chunks(io.BytesIO(b"a\nb")) for value in chunk.values]
    assert found == [b"a", b"b"]


def test_a_newline_in_quotes_does_not_end_a_record() -> None:
    data = b'a,"x\ny"\nb,"say ""hi""\n"\nc\n'
    [chunk] = list(chunks(io.BytesIO(data), quoted=True))
    assert chunk.values == [b'a,"x\ny"', b'b,"say ""hi""\n"', b"c"]
    assert chunk.lines == [1, 3, 5]


@given(records=st.lists(st.text("ab,\n", min_size=1, max_size=12)), size=st.integers(1, 20))
def test_records_are_the_same_however_they_arrive(records: list[str], size: int) -> None:
    data = "".join(f'"{record}",1\n' for record in records).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK", size)
        found = [value for chunk in chunks(io.BytesIO(data), quoted=True) for value in chunk.values]
    assert found == [f'"{record}",1'.encode() for record in records]


def test_a_line_is_passed_on_before_the_next_has_arrived() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as stream, open(writing, "wb", buffering=0) as pipe:
        found = chunks(stream)
        for number in range(3):
            pipe.write(b"line %d\nhalf a " % number)
            assert next(found).values[0].endswith(b"line %d" % number)


def test_the_end_of_a_terminals_input_is_final() -> None:
    keyboard, terminal = pty.openpty()
    with open(terminal, "rb", buffering=0) as stream:
        os.write(keyboard, b"a line\n\x04not for us\n")
        assert [value for chunk in chunks(stream) for value in chunk.values] == [b"a line"]
    os.close(keyboard)


def test_a_pipe_that_does_not_block_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with open(reading, "rb", buffering=0) as stream, open(writing, "wb", buffering=0) as pipe:
        threading.Timer(0.1, lambda: pipe.write(b"late\n")).start()
        assert next(chunks(stream)).values == [b"late"]
