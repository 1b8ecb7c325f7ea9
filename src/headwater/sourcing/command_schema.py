"""The commands and questions of a decider as rows of one topic, on their way to the node that decides them.

Invariant: a row becomes the command that was sent, or an error, and nothing that is guessed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from headwater.errors import SchemaError, UsageError
from headwater.sourcing.event_schema import message_columns, message_type
from headwater.sourcing.field_types import loaded, stored_field

META = {
    "key": "STRING NOT NULL",
    "command": "STRING NOT NULL",
    "request_id": "STRING NOT NULL",
    "sent_at": "TIMESTAMP NOT NULL",
    "question": "STRING",
}
"""What a command's record has beside the command's own fields; a question has its arguments, as JSON."""


_NEVER = datetime.fromtimestamp(0, UTC)


class Sending(NamedTuple):
    """Under what a command or a question is sent."""

    key: str
    request_id: str
    sent_at: datetime


class CommandSchema:
    """The commands of one decider, and how they are sent."""

    def __init__(self, name: str, commands: Sequence[type]):
        self.name = name
        self._types = {kind.__name__: message_type(kind, f'command of decider "{name}"') for kind in commands}
        if len(self._types) < len(commands):
            raise SchemaError(f'decider "{name}" has two commands of one name', hint="rename one of them")
        self._columns = message_columns(name, self._types.values(), META)

    @property
    def ddl(self) -> str:
        """The columns of the topic, as Spark DDL."""
        return ", ".join(f"{name} {kind}" for name, kind in (META | self._columns).items())

    def row(self, command: Any, sending: Sending) -> dict[str, Any]:
        """Return a command as a row of the topic."""
        found = self._types.get(type(command).__name__)
        if found is None or found.kind is not type(command):
            raise UsageError(
                f'decider "{self.name}" has no command "{type(command).__name__}"',
                hint="its commands: " + ", ".join(self._types),
            )
        fields = zip(found.fields.items(), found.values(command), strict=True)
        what = f'command "{type(command).__name__}" of decider "{self.name}"'
        values = {name: stored_field(value, kind, name, what) for (name, kind), value in fields}
        return {**sending._asdict(), "command": type(command).__name__, **values}

    def content(self, command: Any) -> str:
        """Return a short text that differs where commands of a kind do; a field that was added, and has its
        default, makes no difference.
        """
        row = self.row(command, Sending("", "", _NEVER))
        kind = type(command)
        plain = {
            each.name for each in dataclasses.fields(kind) if _is_default(each, getattr(command, each.name))
        }
        values = {name: row[name] for name in self._types[kind.__name__].fields if name not in plain}
        return sha256(repr(sorted(values.items())).encode()).hexdigest()[:12]

    def question(self, name: str, arguments: Mapping[str, Any], sending: Sending) -> dict[str, Any]:
        """Return a question as a row of the topic."""
        return {**sending._asdict(), "command": name, "question": orjson.dumps(dict(arguments)).decode()}

    def command(self, row: Mapping[str, Any]) -> Any:
        """Return the command that a row stands for."""
        found = self._types.get(row["command"])
        if found is None:
            raise SchemaError(
                f'decider "{self.name}" has no command "{row["command"]}"',
                hint="its commands: " + ", ".join(self._types),
            )
        values = {
            name: loaded(row.get(name), kind)
            for name, kind in found.fields.items()
            if row.get(name) is not None or kind.optional or name not in found.defaults
        }
        return found.kind(**values)


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default_factory is not dataclasses.MISSING:
        return bool(field.default_factory() == value)
    return bool(field.default is not dataclasses.MISSING and field.default == value)
