"""Messages of syslog, as their RFCs have them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.ingest.lines.syslog import decode_messages, parse_message
from soaking import examples


def test_the_examples_of_rfc_5424_are_read() -> None:
    one = parse_message(
        "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - "
        "\N{ZERO WIDTH NO-BREAK SPACE}'su root'"
    )
    assert (one.facility, one.severity, one.host, one.app, one.process) == (
        4,
        2,
        "mymachine.example.com",
        "su",
        None,
    )
    assert (one.message_id, one.message, one.data, one.version) == ("ID47", "'su root'", [], 1)
    assert one.at == datetime(2003, 10, 11, 22, 14, 15, 3000, UTC)
    two = parse_message("<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time.")
    assert two.at == datetime(2003, 8, 24, 12, 14, 15, 3, UTC)
    assert (two.process, two.message) == ("8710", "%% It's time.")
    four = parse_message(
        "<165>1 2003-10-11T22:14:15.003Z h evntslog - ID47 "
        '[exampleSDID@32473 iut="3" eventSource="Application"]'
        "[examplePriority@32473]"
    )
    assert four.data == [
        {"id": "exampleSDID@32473", "name": "iut", "value": "3"},
        {"id": "exampleSDID@32473", "name": "eventSource", "value": "Application"},
        {"id": "examplePriority@32473", "name": None, "value": None},
    ]
    assert four.message == ""


def test_rfc_3164_is_text_with_what_can_be_had() -> None:
    old = parse_message("<34>Oct 11 22:14:15 mymachine su[7]: 'su root' failed")
    assert (old.facility, old.severity, old.host, old.app, old.process) == (4, 2, "mymachine", "su", "7")
    assert old.message == "Oct 11 22:14:15 mymachine su[7]: 'su root' failed"
    assert (old.at, old.version) == (None, None)


@pytest.mark.parametrize(
    "text", ["", "plain", "<999>x", "<34>", "<34>1 2026-02-30T00:00:00Z a b c d - x", "<1>1 - - - -"]
)
def test_what_is_no_message_is_text(text: str) -> None:
    assert (parse_message(text).message or "").endswith(text.rpartition(">")[2])
    assert parse_message(text).version is None


VALUE = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@examples(100)
@given(st.lists(st.tuples(st.sampled_from(["ip", "a"]), VALUE), max_size=4), VALUE, st.integers(0, 191))
def test_structured_data_is_kept_whatever_it_holds(
    pairs: list[tuple[str, str]], text: str, priority: int
) -> None:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("]", "\\]")

    data = "".join(f' {name}="{escaped(value)}"' for name, value in pairs)
    parsed = parse_message(f"<{priority}>1 - host app 1 id [x@1{data}] {text}")
    assert parsed.version == 1
    kept = [(each["name"], each["value"]) for each in parsed.data or () if each["name"] is not None]
    assert kept == pairs
    assert parsed.message == text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    assert (parsed.facility, parsed.severity) == divmod(priority, 8)


@examples(100)
@given(st.text(max_size=60))
def test_no_text_is_lost(text: str) -> None:
    parsed = parse_message(text)
    assert parsed.version == 1 or text.endswith(parsed.message or "")


def test_a_message_that_is_no_text_is_named() -> None:
    batch, bad = decode_messages([b"<34>one", b"\xff", b"<35>1 - - - - - - two"])
    assert [number for number, _ in bad] == [1]
    assert batch.column("message").to_pylist() == ["one", "two"]
    assert batch.column("at").null_count == 0
    assert json.dumps(batch.column("version").to_pylist()) == "[null, 1]"
