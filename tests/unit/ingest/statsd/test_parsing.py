"""Blocks of StatsD's lines against a slow, obvious parser."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from headwater.ingest.statsd.parsing import parse
from headwater.ingest.statsd.samples import CODES
from soaking import examples

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")


@dataclass
class Slow:
    """What one reads off each line by itself."""

    samples: list[tuple[object, ...]] = field(default_factory=list)
    malformed: int = 0
    not_taken: int = 0
    lines: int = 0


def slow(block: bytes) -> Slow:
    result = Slow()
    for raw in block.split(b"\n"):
        if not raw:
            continue
        result.lines += 1
        if raw.startswith((b"_e{", b"_sc|")):
            result.not_taken += 1
            continue
        samples = line_samples(raw)
        if samples is None:
            result.malformed += 1
        elif samples == "timed":
            result.not_taken += 1
        else:
            result.samples += samples
    return result


def line_samples(raw: bytes) -> list[tuple[object, ...]] | str | None:
    try:
        line = raw.decode()
    except UnicodeDecodeError:
        return None
    head, *fields = line.split("|")
    name, colon, value = head.partition(":")
    if not (name and colon and value and fields) or fields[0].encode() not in CODES:
        return None
    kind, rate, tags, timed = fields[0], 1.0, "", False
    for each in fields[1:]:
        if each.startswith("@"):
            rate = as_number(each[1:]) or 0.0
            if not 0 < rate <= 1:
                return None
        elif each.startswith("#"):
            tags = ",".join(sorted({tag for tag in each[1:].split(",") if tag}))
        elif each.startswith("T") and each[1:].isdecimal():
            timed = True
        elif not each.startswith(("c:", "e:", "card:")):
            return None
    if timed:
        return "timed"
    if kind == "s":
        return [(name, CODES[b"s"], tags, None, value, 1.0, False)]
    numbers = [as_number(text) for text in value.split(":")]
    if None in numbers:
        return None
    rate = 1.0 if kind == "g" else rate
    signed = [kind == "g" and text[0] in "+-" for text in value.split(":")]
    return [
        (name, CODES[kind.encode()], tags, number, None, rate, delta)
        for number, delta in zip(numbers, signed, strict=True)
    ]


def as_number(text: str) -> float | None:
    value = float(text) if NUMBER.match(text) else None
    return None if value is None or abs(value) == float("inf") else value


NAMES = st.sampled_from(["a", "page.views", "größe", "_e", "_sc", "x y", ""])
VALUES = st.sampled_from(
    ["1", "+2", "-3", "2.5", ".5", "1.", "1e3", "1e999", "nan", "inf", "++1", "1_0", " 1", ""]
)
KINDS = st.sampled_from(["c", "g", "ms", "h", "d", "s", "m", "", "C", "msx"])
MORE = st.lists(
    st.sampled_from(
        ["@0.1", "@1", "@0", "@2", "@x", "#b,a:1", "#", "#a:1,,a:1", "c:x", "T17", "Tx", "card:low", "?"]
    ),
    max_size=3,
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    values = draw(st.lists(VALUES, min_size=1, max_size=3))
    fields = [f"{draw(NAMES)}:{':'.join(values)}", draw(KINDS), *draw(MORE)]
    return "|".join(fields).encode()


JUNK = st.binary(max_size=12).map(lambda raw: raw.replace(b"\n", b"")) | st.sampled_from(
    [
        b"",
        b"_e{1,1}:a|b",
        b"_sc|x|0",
        b"\xff:1|c",
        b"a:1|c\xff",
        b":1|c",
        b"a:|c",
        b"a|c",
        b"_",
        b"_e",
        b"_sc",
        b"|:|",
    ]
)


@examples(200)
@given(st.lists(lines() | JUNK, max_size=12))
def test_a_block_is_what_each_of_its_lines_is(parts: list[bytes]) -> None:
    block = b"\n".join(parts)
    fast, expected = parse(block), slow(block)
    found = [tuple(row.values()) for row in fast.samples.to_pylist()]
    assert sorted(map(repr, found)) == sorted(map(repr, expected.samples))
    assert (fast.lines, fast.malformed, fast.not_taken) == (
        expected.lines,
        expected.malformed,
        expected.not_taken,
    )
    gauges = [each for each in expected.samples if each[1] == CODES[b"g"]]
    assert [each for each in found if each[1] == CODES[b"g"]] == gauges, "gauges keep their order"


def test_events_and_service_checks_are_counted_as_not_taken() -> None:
    parsed = parse(b"_e{5,4}:title|text|#a\n_sc|db|0\na:1|c|T1656581400\nb:1|c")
    assert (parsed.not_taken, parsed.malformed, len(parsed.samples)) == (3, 0, 1)
