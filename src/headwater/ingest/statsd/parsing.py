"""Lines of StatsD become columns, a whole block at a time.

Separators are found with numpy over all bytes of a block, fields are cut out by their places, and only texts
that differ (tags and rates, of which there are few) are looked at one by one. Invariant: every line that is
not empty is samples, malformed, or not taken, as the slow parser of the tests says too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.ingest.statsd.samples import (
    CODES,
    GAUGE,
    NUMBER,
    SAMPLED,
    SAMPLES,
    SET,
    Extension,
    ParsedBlock,
    parse_extension,
)
from headwater.ingest.valid_text import is_text

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_NEWLINE, _COLON, _PIPE, _UNDERSCORE = b"\n:|_"
_KIND_OF_BYTE = np.full(256, -1, np.int8)
for _text, _code in CODES.items():
    if len(_text) == 1:
        _KIND_OF_BYTE[_text[0]] = _code
_TIMER_BYTES = b"ms"
_PADDING = bytes(4)
"""Bytes behind a block, so that the first bytes of its last line can be looked at without a check."""


class _Fields(NamedTuple):
    """Where the fields of lines begin and end, of lines that have them."""

    start: Places
    colon: Places
    pipe: Places
    extension: Places
    end: Places

    def chosen(self, mask: Mask) -> _Fields:
        return _Fields(*(each[mask] for each in self))


def parse(block: bytes) -> ParsedBlock:
    """Return the samples of lines with newlines between them.

    >>> parse(b"page.views:3|c|@0.5").samples.to_pylist()[0]["rate"]
    0.5
    """
    data = np.frombuffer(block + _PADDING, np.uint8)
    starts, ends = _lines(data[: len(block)])
    ours = ~_is_event(data, starts)
    fields, kinds = _fields(data, starts[ours], ends[ours])
    fields, kinds = _readable(block, fields, kinds)
    extensions, codes = _extensions(data, fields)
    well = np.array([each is not None for each in extensions], bool)[codes]
    taken = np.array([each is not None and each.is_taken for each in extensions], bool)[codes]
    samples, kept = _samples(
        data, fields.chosen(taken), kinds[taken], _Extensions.of(extensions, codes[taken])
    )
    not_taken = int(len(starts) - ours.sum() + (well & ~taken).sum())
    return ParsedBlock(samples, len(starts), len(starts) - not_taken - kept, not_taken)


def _lines(data: Bytes) -> tuple[Places, Places]:
    ends = np.append(np.flatnonzero(data == _NEWLINE), len(data))
    starts = np.append(0, ends[:-1] + 1)
    return starts[ends > starts], ends[ends > starts]


def _is_event(data: Bytes, starts: Places) -> Mask:
    """Tell which lines are DogStatsD's events (``_e{``) and service checks (``_sc|``)."""
    first, second, third, fourth = (data[starts + n] for n in range(4))
    event = (second == ord("e")) & (third == ord("{"))
    check = (second == ord("s")) & (third == ord("c")) & (fourth == _PIPE)
    mask: Mask = (first == _UNDERSCORE) & (event | check)
    return mask


def _fields(data: Bytes, starts: Places, ends: Places) -> tuple[_Fields, npt.NDArray[np.int8]]:
    """Return the places of ``NAME:VALUE|KIND…`` in lines that look like that, and their kinds."""
    far = len(data)
    colons = np.append(np.flatnonzero(data == _COLON), far)
    pipes = np.append(np.flatnonzero(data == _PIPE), (far, far))
    at = np.searchsorted(pipes, starts)
    fields = _Fields(
        starts, colons[np.searchsorted(colons, starts)], pipes[at], np.minimum(pipes[at + 1], ends), ends
    )
    named = (fields.colon > starts) & (fields.colon + 1 < fields.pipe) & (fields.pipe < ends)
    fields = fields.chosen(named)
    first, length = data[fields.pipe + 1], fields.extension - fields.pipe - 1
    timer = (length == 2) & (first == _TIMER_BYTES[0]) & (data[fields.pipe + 2] == _TIMER_BYTES[1])
    kinds = np.where(timer, CODES[_TIMER_BYTES], np.where(length == 1, _KIND_OF_BYTE[first], -1))
    return fields.chosen(kinds >= 0), kinds[kinds >= 0].astype(np.int8)


def _readable(
    block: bytes, fields: _Fields, kinds: npt.NDArray[np.int8]
) -> tuple[_Fields, npt.NDArray[np.int8]]:
    """Leave out lines that are no UTF-8."""
    try:
        block.decode()
    except UnicodeDecodeError:
        spans = zip(fields.start.tolist(), fields.end.tolist(), strict=True)
        good = np.array(
            [is_text(block[start:end]) for start, end in spans], bool
        )  # a block in which one is not
        return fields.chosen(good), kinds[good]
    return fields, kinds


def _cut(data: Bytes, start: Places, end: Places) -> pa.Array:
    """Return the bytes between places, as texts; the spans must not overlap and be in order."""
    if not len(start):
        return pa.array([], pa.string())
    offsets = np.stack([start, end], axis=1).ravel().astype(np.int32)
    # Every second element is what lies between two spans: one take leaves it out, and copies the rest.
    every = pa.Array.from_buffers(
        pa.string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    return every.take(pa.array(np.arange(0, len(offsets), 2)))


class _Extensions(NamedTuple):
    """Rates and tags of lines."""

    rate: npt.NDArray[np.float64]
    tags: pa.Array

    @classmethod
    def of(cls, each: list[Extension | None], codes: npt.NDArray[np.int64]) -> _Extensions:
        rates = np.array([one.rate if one is not None else 1.0 for one in each], float)
        tags = pa.array([one.tags if one is not None else "" for one in each], pa.string())
        return cls(rates[codes], tags.take(pa.array(codes)))


def _extensions(data: Bytes, fields: _Fields) -> tuple[list[Extension | None], npt.NDArray[np.int64]]:
    """Return what follows the kinds, each once, and which of them each line has."""
    encoded = _cut(data, fields.extension, fields.end).dictionary_encode()
    # One by one, and remembered: clients write the same few rates and tags again and again.
    parsed = [parse_extension(text) for text in encoded.dictionary.cast(pa.binary()).to_pylist()]
    return parsed, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _samples(
    data: Bytes, fields: _Fields, kinds: npt.NDArray[np.int8], more: _Extensions
) -> tuple[pa.RecordBatch, int]:
    """Return samples, and of how many lines they are."""
    values = _cut(data, fields.colon + 1, fields.pipe)
    sets = np.flatnonzero(kinds == SET)
    numeric = np.flatnonzero(kinds != SET)
    texts, lines = _unpacked(values.take(pa.array(numeric)), numeric)
    numbers, good = _numbers(texts)
    bad = np.unique(lines[~good])
    keep = ~np.isin(lines, bad) if len(bad) else good
    order = np.append(lines[keep], sets)
    members = pa.concat_arrays([pa.nulls(int(keep.sum()), pa.string()), values.take(pa.array(sets))])
    figures = np.append(numbers[keep], np.zeros(len(sets)))
    signed = pc.match_substring_regex(texts.filter(pa.array(keep)), "^[+-]").to_numpy(zero_copy_only=False)
    of = kinds[order]
    columns = [
        _cut(data, fields.start, fields.colon).take(pa.array(order)),
        pa.array(of),
        more.tags.take(pa.array(order)),
        pa.array(figures, mask=of == SET),
        members,
        pa.array(np.where(np.isin(of, SAMPLED), more.rate[order], 1.0)),
        pa.array(np.append(signed.astype(bool), np.zeros(len(sets), bool)) & (of == GAUGE)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SAMPLES), len(numeric) - len(bad) + len(sets)


def _unpacked(values: pa.Array, lines: Places) -> tuple[pa.Array, Places]:
    """Split ``1:2:3``, several values of one line; return each with its line's number."""
    if not pc.any(pc.match_substring(values, ":")).as_py():
        return values, lines
    lists = pc.split_pattern(values, ":")
    return lists.flatten(), lines[pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)]


def _numbers(texts: pa.Array) -> tuple[npt.NDArray[np.float64], Mask]:
    """Return texts as numbers, and which of them are."""
    try:
        numbers = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
        if np.isfinite(numbers).all():
            return numbers, np.ones(len(numbers), bool)
    except pa.ArrowInvalid:
        pass  # one is none, or has a plus, or is too large
    good = pc.match_substring_regex(texts, NUMBER)
    plain = pc.utf8_ltrim(pc.if_else(good, texts, "0"), "+")
    numbers = _cast(plain)
    return numbers, good.to_numpy(zero_copy_only=False) & np.isfinite(numbers)


def _cast(texts: pa.Array) -> npt.NDArray[np.float64]:
    try:
        numbers: npt.NDArray[np.float64] = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return numbers
    except pa.ArrowInvalid:  # Arrow has no number for 1e999; Python's infinity is left out afterwards
        return np.array([float(text) for text in texts.to_pylist()])
