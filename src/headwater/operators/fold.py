"""The user's own fold: how it is called, and what it must give back.

Invariant: the state that a row fold sees is what is stored of the one it gave back, also within one
step; so its results do not depend on how the events are split into steps, and changing a state in
place changes no earlier one. What a fold raises is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import pyarrow as pa

from headwater.errors import RowError, nearest
from headwater.operators.groups import Numbers
from headwater.operators.values import dicts
from headwater.schema import type_name

RowFold = Callable[[dict[str, Any] | None, dict[str, Any]], dict[str, Any]]
"""From the state before an event, None at first, and the event, to the state after it."""
TableFold = Callable[[pa.Table, pa.Table, Numbers], pa.Table]
"""From the states before, the events, and the place of each event's state, to the states after each."""

KNOWN = "_known"
"""The column of the states before that tells a state from the nulls of a new key."""

_AS_THEY_ARE: dict[pa.DataType, type] = {
    pa.bool_(): bool,
    **dict.fromkeys([pa.int8(), pa.int16(), pa.int32(), pa.int64()], int),
    pa.float64(): float,
    pa.string(): str,
    pa.binary(): bytes,
}
"""Types whose values are the same before and after they are stored."""


class Folding:
    """A fold with the schema of its state."""

    def __init__(self, fold: Callable[..., Any], schema: pa.Schema):
        self._fold = fold
        self._schema = schema
        self._names = schema.names
        # What is kept of a state must not change when the fold changes the state it is given.
        self._apart: Callable[[Any], dict[str, Any]] = (
            deepcopy if any(pa.types.is_nested(field.type) for field in schema) else dict
        )
        self._kinds = [_AS_THEY_ARE.get(field.type) for field in schema]

    def rows(self, before: pa.Table, events: pa.Table, groups: Numbers) -> pa.Table:
        """Call a row fold for each event, and return the states after them."""
        states = _states(before)
        after: list[Any] = []
        for event, group in zip(dicts(events), groups.tolist(), strict=True):
            state = self._stored(self._fold(states[group], event))
            states[group] = self._apart(state)
            after.extend(map(state.get, self._names))
        width = len(self._names)
        return self._table(after[place::width] for place in range(width))

    def tables(self, before: pa.Table, events: pa.Table, groups: Numbers) -> pa.Table:
        """Call a table fold for all events at once, and return the states after them."""
        after = self._fold(before, events, groups.copy())
        if not isinstance(after, pa.Table):
            raise self._error(f"returned a {type(after).__name__}", hint="return a pyarrow.Table")
        self._check_names(after.column_names)
        if len(after) != len(events):
            raise self._error(f"returned {len(after)} rows for {len(events)} events")
        return self._table(after.column(name) for name in self._names)

    def _stored(self, state: Any) -> dict[str, Any]:
        """Return a state as it is after it has been stored."""
        if not isinstance(state, dict):
            raise self._error(f"returned a {type(state).__name__}", hint="return a dict")
        # A column that is missing reads as None here, which is no value of the expected type.
        if len(state) == len(self._kinds) and list(map(type, map(state.get, self._names))) == self._kinds:
            return state
        self._check_names(list(state))
        return {field.name: self._value(state[field.name], field) for field in self._schema}

    def _value(self, value: Any, field: pa.Field) -> Any:
        if value is None or type(value) is _AS_THEY_ARE.get(field.type):
            return value
        try:
            stored = pa.scalar(value, field.type).as_py(maps_as_pydicts="strict")
        except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
            raise self._misfit(field, error) from error
        if pa.types.is_integer(field.type) and stored != value:
            raise self._misfit(field, f"{value!r} is not a whole number")
        return stored

    def _table(self, columns: Iterable[Any]) -> pa.Table:
        fitting = [self._column(values, field) for values, field in zip(columns, self._schema, strict=True)]
        return pa.Table.from_arrays(fitting, schema=self._schema)

    def _column(self, values: Any, field: pa.Field) -> Any:
        try:
            chunked = isinstance(values, pa.ChunkedArray)
            column = values.cast(field.type) if chunked else pa.array(values, field.type)
        except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
            raise self._misfit(field, error) from error
        if column.null_count and not field.nullable:
            raise self._misfit(field, "it is NOT NULL and has no value")
        return column

    def _check_names(self, names: list[str]) -> None:
        for name in self._names:
            if name not in names:
                raise self._error(f'returned no column "{name}"', hint=nearest(name, names))
        for name in names:
            if names.count(name) > 1:
                raise self._error(f'returned the column "{name}" twice')
            if name not in self._names:
                hint = nearest(name, self._names)
                raise self._error(f'returned a column "{name}" that its schema does not have', hint=hint)

    def _misfit(self, field: pa.Field, reason: object) -> RowError:
        problem = f'returned a value that does not fit column "{field.name}", which is {type_name(field)}'
        return self._error(problem, detail=str(reason))

    def _error(self, problem: str, *, detail: str | None = None, hint: str | None = None) -> RowError:
        name = getattr(self._fold, "__name__", type(self._fold).__name__)
        return RowError(f'fold "{name}" {problem}', detail=detail, hint=hint)


def _states(before: pa.Table) -> list[dict[str, Any] | None]:
    known = before.column(KNOWN).to_pylist()
    states = zip(dicts(before.drop_columns(KNOWN)), known, strict=True)
    return [state if there else None for state, there in states]
