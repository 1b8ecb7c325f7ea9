"""The events of a decider as rows of one topic: a column for each field of any of them, nullable.

So an event is an ordinary record: pipelines read it, and views are projections of it. Old events stay as they
were written; an upcaster reads them as what they would be today.

Invariant: a row becomes the event that it was written for, or what an upcaster makes of it, or an error, and
nothing that is guessed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from headwater.errors import SchemaError
from headwater.sourcing.field_types import FieldType, field_types, loaded, stored_field

META = {
    "key": "STRING NOT NULL",
    "event": "STRING NOT NULL",
    "revision": "INT NOT NULL",
    "recorded_at": "TIMESTAMP NOT NULL",
    "command": "STRING",
    "request_id": "STRING",
    "rejection": "STRING",
}
"""What an event's record has beside the event's own fields."""
NOTHING = "NothingHappened"
"""What the record of a command is called that led to no event, and is remembered all the same."""

Upcast = Callable[[Mapping[str, Any]], Any]
"""From the fields of an old event, those that are not null, to an event of today, or a list of several."""
Upcasters = Mapping[str | tuple[str, int], Upcast]
"""By the name that an event had, or that and its revision."""


class Recording(NamedTuple):
    """Under what an event is recorded."""

    key: str
    at: Any
    command: str | None
    request_id: str | None

    def row(self, event: str, revision: int) -> dict[str, Any]:
        """Return what every record has."""
        return {
            "key": self.key,
            "event": event,
            "revision": revision,
            "recorded_at": self.at,
            "command": self.command,
            "request_id": self.request_id,
        }


class MessageType(NamedTuple):
    """The class of an event or a command, taken apart."""

    kind: type
    revision: int
    fields: dict[str, FieldType]
    values: Callable[[Any], tuple[Any, ...]]
    defaults: frozenset[str]
    """Fields that an older event may lack."""


class EventSchema:
    """The events of one decider, and how they are stored."""

    def __init__(self, name: str, events: Sequence[type], upcasters: Upcasters):
        self.name = name
        self._types = {kind.__name__: message_type(kind, f'event of decider "{name}"') for kind in events}
        if NOTHING in self._types:
            raise SchemaError(f'no event may be called "{NOTHING}"', hint="rename it")
        if len(self._types) < len(events):
            raise SchemaError(f'decider "{name}" has two events of one name', hint="rename one of them")
        for each in events:
            _check_defaults(each, self._types[each.__name__].fields)
        self.columns = message_columns(name, self._types.values(), META)
        self._upcasters = dict(upcasters)
        self._check_upcasters()

    @property
    def ddl(self) -> str:
        """The columns of the topic, as Spark DDL."""
        return ", ".join(f"{name} {kind}" for name, kind in (META | self.columns).items())

    def row(self, event: Any, recording: Recording) -> dict[str, Any]:
        """Return an event as a row of the topic."""
        found = self._types.get(type(event).__name__)
        if found is None or found.kind is not type(event):
            raise SchemaError(
                f'decider "{self.name}" has no event "{type(event).__name__}"',
                hint="its events: " + ", ".join(self._types),
            )
        row = recording.row(type(event).__name__, found.revision)
        for (name, kind), value in zip(found.fields.items(), found.values(event), strict=True):
            plain = kind.store is None and value is not None
            row[name] = value if plain else stored_field(value, kind, name, self._message(found))
        return row

    def nothing(self, recording: Recording, rejection: str | None) -> dict[str, Any]:
        """Return the row of a command that led to no event: rejected, or not."""
        return recording.row(NOTHING, 0) | {"rejection": rejection}

    def events(self, row: Mapping[str, Any]) -> list[Any]:
        """Return the events that a row of the topic stands for today."""
        name, revision = row["event"], row["revision"]
        if name == NOTHING:
            return []
        upcast = self._upcasters.get((name, revision)) or self._upcasters.get(name)
        known = self._types.get(name)
        if known is not None and known.revision == revision and (name, revision) not in self._upcasters:
            return [self._loaded(known, row)]
        if upcast is None:
            raise self._unknown(name, revision)
        made = upcast({each: value for each, value in row.items() if value is not None and each not in META})
        made = list(made) if isinstance(made, list | tuple) else [made]
        for each in made:
            if type(each) not in {kind.kind for kind in self._types.values()}:
                raise SchemaError(
                    f'upcaster of event "{name}" of decider "{self.name}" returned {each!r:.80}',
                    hint="return an event of " + ", ".join(self._types) + ", or a list of them",
                )
        return made

    def _loaded(self, found: MessageType, row: Mapping[str, Any]) -> Any:
        values = {}
        for name, kind in found.fields.items():
            value = row.get(name)
            if value is None and not kind.optional:
                if name not in found.defaults:
                    raise self._lacking(found, name)
                continue  # it was stored before the field was there: the class says what it is then
            values[name] = value if kind.load is None else loaded(value, kind)
        return found.kind(**values)

    def _check_upcasters(self) -> None:
        for each in self._upcasters:
            if not isinstance(each, str) and (type(each) is not tuple or len(each) != 2):
                raise SchemaError(
                    f'upcaster of decider "{self.name}" for {each!r:.80}',
                    hint='name an event, "Credited", or an event and its revision, ("Deposited", 1)',
                )
            name = each if isinstance(each, str) else each[0]
            if isinstance(each, str) and name in self._types and self._types[name].revision == 1:
                raise SchemaError(
                    f'upcaster of decider "{self.name}" for "{name}" is never called',
                    detail="it is an event of today",
                    hint=f'give the class a `revision: ClassVar[int] = 2`, and the upcaster ("{name}", 1)',
                )

    def _unknown(self, name: str, revision: int) -> SchemaError:
        known = self._types.get(name)
        what = "there is no such event, and no upcaster for it"
        if known is not None:
            what = f"the event is of revision {known.revision} today, and there is no upcaster for {revision}"
        return SchemaError(
            f'stored event "{name}" of decider "{self.name}", revision {revision}, cannot be read',
            detail=what,
            hint=f'add an upcaster: upcasters={{("{name}", {revision}): lambda fields: …}}',
        )

    def _message(self, found: MessageType) -> str:
        return f'event "{found.kind.__name__}" of decider "{self.name}"'

    def _lacking(self, found: MessageType, name: str) -> SchemaError:
        kind = found.kind.__name__
        return SchemaError(
            f'stored event "{kind}" of decider "{self.name}" has no "{name}"',
            detail="it was stored before the event had that field",
            hint=f'give the field a default, or the class a higher revision and an upcaster for ("{kind}", '
            f"{found.revision})",
        )


def message_type(kind: type, what: str) -> MessageType:
    """Take the class of an event or a command apart, or refuse it."""
    check_message(kind, what)
    fields = field_types(kind)
    getter = attrgetter(*fields) if fields else None
    values: Callable[[Any], tuple[Any, ...]] = lambda event: ()  # noqa: E731  # one of three
    if getter is not None:
        values = getter if len(fields) > 1 else lambda event: (getter(event),)
    missing = dataclasses.MISSING
    own = {each.name: each for each in dataclasses.fields(kind)}
    defaults = {n for n, f in own.items() if f.default is not missing or f.default_factory is not missing}
    return MessageType(
        kind,
        1 if "revision" in fields else int(getattr(kind, "revision", 1)),
        fields,
        values,
        frozenset(defaults),
    )


def _check_defaults(kind: type, types: Mapping[str, FieldType]) -> None:
    """Refuse a default of which nobody could tell whether it was meant: null is stored for None too."""
    for each in dataclasses.fields(kind):
        absent = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        if types[each.name].optional and not absent and each.default is not None:
            raise SchemaError(
                f'field "{each.name}" of event "{kind.__name__}" may be None, and has another default',
                detail="one that was stored before the field was there could not be told from one with None",
                hint="let its default be None, or leave None out of its annotation; or no default, the "
                "class a higher `revision: ClassVar[int]`, and an upcaster that says what older ones had",
            )


def check_message(kind: type, what: str) -> None:
    """Refuse a class of events or commands that is no frozen dataclass."""
    frozen = dataclasses.is_dataclass(kind) and getattr(kind, "__dataclass_params__", None)
    if not isinstance(kind, type) or not frozen or not frozen.frozen:
        raise SchemaError(
            f"{what} is no frozen dataclass: {getattr(kind, '__name__', kind)!s:.80}",
            detail="what has happened does not change",
            hint="declare it with @dataclass(frozen=True)",
        )


def message_columns(decider: str, every: Iterable[MessageType], meta: Collection[str]) -> dict[str, str]:
    """Return a column for each field of events or commands, which are rows of one topic."""
    columns: dict[str, str] = {}
    of: dict[str, str] = {}
    for each in every:
        for name, kind in each.fields.items():
            if name.lower() in meta:
                raise SchemaError(
                    f'field "{name}" of "{each.kind.__name__}" is named as a column that every record has',
                    hint=f'rename it, as in "{each.kind.__name__.lower()}_{name}"',
                )
            if columns.setdefault(name, kind.ddl) != kind.ddl:
                raise SchemaError(
                    f'field "{name}" has two types in the messages of decider "{decider}"',
                    detail=f"{columns[name]} in {of[name]}, {kind.ddl} in {each.kind.__name__}",
                    hint="they are rows of one topic: rename one of the fields, or give both one type",
                )
            of.setdefault(name, each.kind.__name__)
    return columns
