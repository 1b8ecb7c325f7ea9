"""Arrays of PostgreSQL as Arrow lists.

An array has one dimension by habit only: the type allows any number, and bounds that begin anywhere. A list
holds arrays of one dimension, whose bounds are not kept; another does not fit.

Invariant: as of ``binary_columns``; elements are decoded all together, as a column of their own.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa

from headwater.capture.postgres.binary_columns import Decode, Decoded, texts
from headwater.capture.postgres.tuples import BINARY, NULL, TEXT, Buffer, Cells, Flags, Places

_HEAD, _DIMENSION = 12, 8
_BOUNDS: Final = re.compile(r"^(?:\[-?\d+:-?\d+\])+=")
_ELEMENT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}]+)')
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def from_binary(element: Decode) -> Decode:
    """Return what decodes arrays in binary form, by what decodes their elements."""

    def decode(cells: Cells) -> Decoded:
        dimensions = np.where(cells.valid, _numbers(cells, 0), 0)
        fit = cells.valid & (dimensions <= 1)
        unfit = {
            int(row): f"an array of {dimensions[row]} dimensions" for row in np.flatnonzero(dimensions > 1)
        }
        counts = np.where(fit & (dimensions == 1), _numbers(cells, _HEAD), 0)
        first = cells.start + _HEAD + _DIMENSION
        return _lists(_elements(cells.buffer, first, counts), counts, fit, element, unfit)

    return decode


def from_text(element: Decode) -> Decode:
    """Return what reads arrays in text form, by what reads their elements."""

    def decode(cells: Cells) -> Decoded:
        written, unfit = texts(cells)
        # Array by array: what separates elements may stand in their texts, and only streams without a
        # binary form come here.
        read = [None if value is None else _read(value) for value in written.to_pylist()]
        wrong = [row for row, value in enumerate(read) if value is None and written[row].is_valid]
        unfit = {**unfit, **{row: written[row].as_py() for row in wrong}}
        counts = np.array([len(value or ()) for value in read], np.int64)
        fit = np.array([value is not None for value in read], bool)
        flat = _cells([each for value in read for each in value or ()])
        return _lists(flat, counts, fit, element, unfit)

    return decode


def _numbers(cells: Cells, offset: int) -> Places:
    at = np.where(cells.valid & (cells.length > offset), cells.start + offset, 0)
    return cells.buffer.numbers("i4", at).astype(np.int64)


def _elements(buffer: Buffer, first: Places, counts: Places) -> Cells:
    """Return the elements of all arrays: the first of each, then the second of each that has one."""
    offsets = np.cumsum(counts) - counts
    kind = np.full(int(counts.sum()), NULL, np.uint8)
    start, length = np.zeros(len(kind), np.int64), np.zeros(len(kind), np.int64)
    place, rows = first.copy(), np.flatnonzero(counts)
    for number in range(int(counts.max(initial=0))):
        rows = rows[counts[rows] > number]
        size = buffer.numbers("i4", place[rows]).astype(np.int64)
        at = offsets[rows] + number
        kind[at] = np.where(size < 0, NULL, BINARY)
        start[at], length[at] = place[rows] + 4, np.maximum(size, 0)
        place[rows] += 4 + length[at]
    return Cells(buffer, kind, start, length)


def _lists(elements: Cells, counts: Places, valid: Flags, decode: Decode, unfit: dict[int, str]) -> Decoded:
    values, wrong = decode(elements)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    rows = np.searchsorted(offsets, np.array(sorted(wrong), np.int64), "right") - 1
    for row, number in zip(rows.tolist(), sorted(wrong), strict=True):
        unfit[row] = wrong[number]
        valid[row] = False
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    kind = pa.list_(values.type)
    return pa.Array.from_buffers(kind, len(counts), [bits, pa.py_buffer(offsets)], children=[values]), unfit


def _read(written: str) -> list[str | None] | None:
    """Return the texts of the elements of an array, or None if it has more than one dimension."""
    body = _BOUNDS.sub("", written)[1:-1]
    if body.startswith("{"):
        return None
    return [_element(quoted, bare) for quoted, bare in _ELEMENT.findall(body)]


def _element(quoted: str, bare: str) -> str | None:
    if bare:
        return None if bare == "NULL" else bare
    return _ESCAPED.sub(r"\1", quoted)


def _cells(written: list[str | None]) -> Cells:
    encoded = [(each or "").encode() for each in written]
    length = np.fromiter(map(len, encoded), np.int64, len(encoded))
    kind = np.where([each is None for each in written], NULL, TEXT).astype(np.uint8)
    return Cells(Buffer(b"".join(encoded) + b"\0" * 32), kind, np.cumsum(length) - length, length)
