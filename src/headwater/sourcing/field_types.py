"""How a field of an event is stored: its annotation as a type of Spark's, its values there and back.

Invariant: a value that comes back equals the one that was stored, and has the type that its annotation says;
an annotation for which that cannot be is refused, and so is a None, however deep inside, where the annotation
has none.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from headwater.errors import SchemaError

Convert = Callable[[Any], Any]
_PLAIN: dict[Any, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    str: "STRING",
    bytes: "BINARY",
    datetime: "TIMESTAMP",
    date: "DATE",
}


class FieldType(NamedTuple):
    """How the values of a field are stored."""

    ddl: str
    store: Convert | None = None
    """From a value that is not None to what the log takes; the value itself if None."""
    load: Convert | None = None
    """From what the log gives back, if it is not None."""
    optional: bool = False
    """Whether None is a value of the field."""


def field_types(kind: type) -> dict[str, FieldType]:
    """Return how each field of a dataclass is stored."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise SchemaError(
            f'annotations of "{kind.__name__}" cannot be read: {error}',
            hint="declare the class where the names of its annotations are known, outside of functions",
        ) from None
    return {each.name: _checked(kind, each.name, hints[each.name]) for each in dataclasses.fields(kind)}


def _checked(kind: type, name: str, annotation: Any) -> FieldType:
    found = field_type(annotation)
    if found is None:
        raise SchemaError(
            f'field "{name}" of "{kind.__name__}" cannot be stored: {_shown(annotation)}',
            detail="a field is bool, int, float, str, bytes, datetime, date, UUID, an Enum of texts or "
            "numbers, a list, tuple[X, ...], dict[str, X] or dataclass of these, or one of them | None",
            hint='name a type of Spark\'s where there are several, as Annotated[Decimal, "DECIMAL(12,2)"]',
        )
    return found


def field_type(annotation: Any) -> FieldType | None:
    """Return how values of an annotation are stored, or None if they cannot be."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if annotation in _PLAIN:
        return FieldType(_PLAIN[annotation])
    if origin is Annotated:
        return _annotated(*inside)
    if origin in (Union, types.UnionType):
        return _optional(inside)
    if origin is Literal:
        return FieldType("STRING") if all(isinstance(each, str) for each in inside) else None
    if annotation is UUID:
        return FieldType("STRING", str, UUID)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _enum(annotation)
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return _struct(annotation)
    return _container(origin, inside)


def _annotated(inner: Any, *notes: Any) -> FieldType | None:
    ddl = next((each for each in notes if isinstance(each, str)), None)
    if ddl is None:
        return field_type(inner)
    if inner is Decimal or inner in _PLAIN:
        return FieldType(ddl)
    found = field_type(inner)
    return None if found is None else found._replace(ddl=ddl)


def _optional(inside: Sequence[Any]) -> FieldType | None:
    others = [each for each in inside if each is not type(None)]
    found = field_type(others[0]) if len(others) == 1 and len(others) < len(inside) else None
    return None if found is None else found._replace(optional=True)


def _enum(kind: type[Enum]) -> FieldType | None:
    values = {type(each.value) for each in kind}
    ddl = _PLAIN.get(values.pop()) if len(values) == 1 else None
    return FieldType(ddl, lambda each: each.value, kind) if ddl in ("STRING", "BIGINT") else None


def _struct(kind: type) -> FieldType | None:
    inner = {
        each.name: field_type(get_type_hints(kind, include_extras=True)[each.name]) for each in _fields(kind)
    }
    if not inner or None in inner.values():
        return None
    known = {name: each for name, each in inner.items() if each is not None}
    columns = ", ".join(f"{name}: {each.ddl}" for name, each in known.items())

    def store(value: Any) -> dict[str, Any]:
        return {name: _inside(getattr(value, name), each) for name, each in known.items()}

    def load(value: Mapping[str, Any]) -> Any:
        return kind(**{name: loaded(value[name], each) for name, each in known.items()})

    return FieldType(f"STRUCT<{columns}>", store, load)


def _container(origin: Any, inside: Sequence[Any]) -> FieldType | None:
    if origin is dict and inside and inside[0] is str:
        return _map(field_type(inside[1]))
    if origin not in (list, tuple, frozenset) or (origin is tuple and inside[1:] != (...,)):
        return None
    item = field_type(inside[0])
    if item is None:
        return None

    def store(value: Any) -> list[Any]:
        found = [_inside(each, item) for each in value]
        return sorted(found, key=repr) if origin is frozenset else found  # one order, whatever is in it

    return FieldType(
        f"ARRAY<{item.ddl}>",
        store,
        lambda value: origin(loaded(each, item) for each in value),
    )


def _map(item: FieldType | None) -> FieldType | None:
    if item is None:
        return None
    return FieldType(
        f"MAP<STRING, {item.ddl}>",
        lambda value: [(name, _inside(each, item)) for name, each in value.items()],
        lambda value: {name: loaded(each, item) for name, each in dict(value).items()},
    )


def stored(value: Any, kind: FieldType) -> Any:
    """Return a value as the log takes it."""
    return value if value is None or kind.store is None else kind.store(value)


class NoneInside(ValueError):
    """A None within a value, where its annotation has none."""


def _inside(value: Any, kind: FieldType) -> Any:
    """Return a value within another as the log takes it."""
    if value is None and not kind.optional:
        raise NoneInside
    return stored(value, kind)


def stored_field(value: Any, kind: FieldType, name: str, message: str) -> Any:
    """Return the value of a field as the log takes it, or refuse it."""
    if value is None and kind.optional:
        return None
    try:
        return _inside(value, kind)
    except NoneInside:
        raise SchemaError(
            f'field "{name}" of {message} ' + ("is None" if value is None else "has None inside"),
            detail="its annotation has no None there, so it could not be read again as it says",
            hint=f'give it a value, or annotate it as in "{name}: '
            + ('int | None"' if value is None else 'list[int | None]"'),
        ) from None


def loaded(value: Any, kind: FieldType) -> Any:
    """Return a value as it was before it was stored."""
    return value if value is None or kind.load is None else kind.load(value)


def _fields(kind: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kind)


def _shown(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or str(annotation)
