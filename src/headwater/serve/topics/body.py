"""What a request's body says: events as JSON, lines of JSON, or an Arrow stream.

Invariant: each value of a JSON body is the text that was sent, to the last digit; nothing is parsed and
written again. What is no such body is refused whole.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

import orjson
import pyarrow as pa

from headwater.errors import RowError
from headwater.serve.http.problem import HttpProblem
from headwater.serve.topics import arrow_stream

MediaType = Literal["application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"]
_KINDS: dict[str, MediaType] = {
    "application/json": "application/json",
    "application/x-ndjson": "application/x-ndjson",
    "application/jsonl": "application/x-ndjson",
    "application/vnd.apache.arrow.stream": "application/vnd.apache.arrow.stream",
}
_BETWEEN_OBJECTS = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\{")
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
"""For finding where a value ends: it makes no number, so none is too long."""


@dataclass(frozen=True)
class Body:
    """The bytes of a request, and what they are."""

    data: bytes
    media_type: MediaType

    def values(self) -> list[bytes]:
        """Return the text of each event of a JSON body."""
        if self.media_type == "application/x-ndjson":
            return [line for line in self.data.split(b"\n") if line.strip()]
        data = self.data.strip(b" \t\r\n")
        return _elements(data) if data.startswith(b"[") else [data]

    def table(self) -> pa.Table:
        """Return the rows of an Arrow stream."""
        return arrow_stream.read(self.data)


def media_type(header: str) -> MediaType:
    """Return what a ``Content-Type`` means; JSON where there is none."""
    kind = header.partition(";")[0].strip().lower() or "application/json"
    if kind not in _KINDS:
        raise HttpProblem(
            415, f'a body of type "{kind:.80}" is not understood', hint="send " + ", ".join(sorted(_KINDS))
        )
    return _KINDS[kind]


def _elements(data: bytes) -> list[bytes]:
    """Return the text of each element of an array.

    Where all elements are objects, they lie between braces with a comma. Such a place may be inside of an
    element too, in a text or a list; then there are more of them than elements, and all is cut exactly.
    """
    try:
        values = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise RowError(
            "the body is not JSON", detail=f"{error.msg.split(': line ')[0]}, at character {error.pos + 1}"
        ) from None
    if not values:
        return []
    inner = data[1:-1].strip(b" \t\r\n")
    cut = _BETWEEN_OBJECTS.sub(b"}\0{", inner).split(b"\0")
    if len(cut) == len(values) and all(isinstance(each, dict) for each in values):
        return cut
    return _cut_exactly(data)


def _cut_exactly(data: bytes) -> list[bytes]:
    text, at, cut = data.decode(), 1, []
    try:
        while True:
            start = _after_space(text, at)
            _, end = _DECODER.raw_decode(text, start)
            cut.append(text[start:end].encode())
            at = _after_space(text, end) + 1
            if text[at - 1] == "]":
                return cut
    except RecursionError:
        raise RowError("the body is nested too deeply", hint="nest it less") from None


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()
