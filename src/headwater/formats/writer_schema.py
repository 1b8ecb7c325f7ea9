"""The schema that a record was written with, as a schema registry gives it.

Which registry, and how it is reached, is the log's affair. Invariant: a schema of one id never changes, so
whoever has it need not ask again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class WriterSchema:
    """A schema as it was registered."""

    text: str
    """Of Avro its JSON; of Protobuf its file descriptor in base64, or where there is none its text."""
    references: tuple[SchemaReference, ...] = ()


@dataclass(frozen=True)
class SchemaReference:
    """A schema that another one names."""

    name: str
    schema: WriterSchema


@dataclass(frozen=True)
class TargetSubject:
    """The schema that a topic's values are to be written with, and its id."""

    id: int
    schema: WriterSchema


class SchemaSubjects(Protocol):
    """Where the schema to write with is found, or registered."""

    def subject(self, name: str, otherwise: Callable[[], str]) -> TargetSubject:
        """Return the newest Avro schema of a subject; register another where it has none."""


class WriterSchemas(Protocol):
    """Where schemas are found by their ids, which are numbers, or texts where they are global."""

    def kind(self, id: int | str) -> str:
        """Return which kind of schema an id is of, as the registry calls it; errors as of ``get``."""

    def get(self, id: int | str, kind: str) -> WriterSchema:
        """Return a schema of a kind; ``RowError`` if there is none, ``LogUnavailable`` if nobody knows."""
