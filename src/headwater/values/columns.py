"""The values of one column, row by row, as an Arrow array of a topic's type.

Every way in goes through here, all rows of a level at once; ways differ in how they write a value
(a time is a ``datetime`` in Python, a text in JSON), and a ``Form`` says how. Invariant: an array from
here has the values that were handed over; where one does not fit, nothing is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_NOTHING = type(None)
_t = pa.types
REFUSALS = (
    pa.ArrowException,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
)
"""What Arrow and Python raise of values that do not fit; ``Misfit`` beside them is our own."""


class Misfit(Exception):
    """A value that is not of its column's type."""


class UnknownField(Misfit):
    """A field that the struct at ``path`` has not."""

    def __init__(self, path: str, name: str, kind: pa.StructType):
        super().__init__(f'unknown field "{path}.{name}"' if path else f'unknown field "{name}"')
        self.path, self.name, self.kind = path, name, kind


@dataclass(frozen=True)
class Form:
    """How a way in writes values."""

    leaf: Callable[[list[Any], pa.DataType], pa.Array]
    """Converts values that are not nested."""
    struct: Callable[[Any], Mapping[str, Any]]
    """Returns a struct's value as a mapping."""
    pairs: Callable[[Any, pa.DataType], Sequence[tuple[Any, Any]]]
    """Returns a map's value as pairs, its keys as values of their type."""
    items: Callable[[Any], Sequence[Any]]
    """Returns an array's value as a sequence."""
    strict: bool = True
    """Whether an unknown field is refused, and not left out."""


def column(values: list[Any], kind: pa.DataType, form: Form, path: str = "") -> pa.Array:
    """Return values of one type as an Arrow array; ``path`` names the column where a field is unknown."""
    if _t.is_struct(kind):
        return _structs(values, kind, form, path)
    if _t.is_map(kind):
        return _maps(values, kind, form, path)
    if _t.is_list(kind):
        return _lists(values, kind, form, path)
    return form.leaf(values, kind)


def only(values: Sequence[Any], *kinds: type) -> None:
    """Refuse values of any other type, except none."""
    if not set(map(type, values)) <= {*kinds, _NOTHING}:
        raise Misfit


def _structs(values: list[Any], kind: pa.StructType, form: Form, path: str) -> pa.Array:
    present = [{} if value is None else form.struct(value) for value in values]
    if form.strict:
        for name in set(chain.from_iterable(present)).difference(field.name for field in kind):
            raise UnknownField(path, str(name), kind)
    children = [
        column([value.get(field.name) for value in present], field.type, form, f"{path}.{field.name}")
        for field in kind
    ]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=_mask(values))


def _maps(values: list[Any], kind: pa.MapType, form: Form, path: str) -> pa.Array:
    every = [None if value is None else form.pairs(value, kind.key_type) for value in values]
    pairs = list(chain.from_iterable(each for each in every if each))
    keys = column([key for key, _ in pairs], kind.key_type, form, path)
    items = column([item for _, item in pairs], kind.item_type, form, path)
    return pa.MapArray.from_arrays(_offsets(every), keys, items, type=kind, mask=_mask(values))


def _lists(values: list[Any], kind: pa.ListType, form: Form, path: str) -> pa.Array:
    every = [None if value is None else form.items(value) for value in values]
    items = list(chain.from_iterable(each for each in every if each is not None))
    child = column(items, kind.value_type, form, path)
    return pa.ListArray.from_arrays(_offsets(every), child, type=kind, mask=_mask(values))


def _offsets(values: Sequence[Sequence[Any] | None]) -> pa.Array:
    lengths = pa.array([0] + [0 if value is None else len(value) for value in values], pa.int64())
    return pc.cumulative_sum(lengths).cast(pa.int32())


def _mask(values: list[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())
