"""What a pipeline captures: databases by name, and which of their tables its own tables and sources follow.

Invariant: nothing here connects to a database; whether it has the tables as they are declared is for
``headwater check`` and for the capture itself to say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import pyarrow as pa

from headwater import schema as schemas
from headwater.errors import PipelineError, nearest
from headwater.names import listed
from headwater.pipeline.declaration import CapturedFrom, CapturedOutboxFrom, Declaration, Source, Table
from headwater.wire_format import JSON

OnMisfit = Literal["stop", "dead_letter"]
"""What becomes of a row that the declared columns cannot hold."""
SCHEMES = ("postgresql", "postgres", "mysql", "mariadb", "sqlite")
COMMITTED = "committed_at"
"""The column with the time of the commit, which is a captured table's event time where it names no other."""
ROW = "row"
"""The header with the key of the row that an event was in."""
OWN_HEADERS = ("op", "position", "transaction", "index", "committed", "snapshot", ROW)
"""The headers that captured records have by themselves."""


@dataclass(frozen=True, kw_only=True)
class CaptureDeclaration(Declaration):
    """A database whose changes become topics."""

    kind: ClassVar[str] = "capture"
    external: ClassVar[bool] = True

    url: str = field(repr=False)
    """Where the database is; it may hold a password, so it is not shown."""
    on_error: OnMisfit = "stop"
    """What becomes of a row that the declared columns cannot hold."""
    max_retained: int | None = None
    """How many bytes the database may keep for the capture before it is given up."""
    alert_retained: int | None = None
    """Above how many there is a warning; half of what it may keep at most if None."""
    transactions: bool = False
    """Whether a topic tells which transactions are whole."""

    @property
    def unreadable_hint(self) -> str:
        """A capture is read through its tables."""
        return f'declare a table with captured="{self.name}.TABLE" and read that'


def captured_from(title: str, text: object, history: bool) -> CapturedFrom | None:
    """Read ``"crm.customers"``: the capture's name and the table's, which may have a schema before it."""
    if text is None:
        if history:
            hint = 'history is of captured tables: captured="crm.customers"'
            raise PipelineError(f"{title} has history, and is not captured", hint=hint)
        return None
    return CapturedFrom(*_capture_and_table(title, text, "crm.customers"), history)


def _capture_and_table(title: str, text: object, example: str) -> tuple[str, str]:
    capture, _, table = text.partition(".") if isinstance(text, str) else ("", "", "")
    if not capture or not table:
        raise PipelineError(
            f"captured of {title} cannot be {text!r:.60}",
            hint=f'name the capture and the table of its database, as in captured="{example}"',
        )
    return capture, table


@dataclass(frozen=True)
class OutboxSettings:
    """What a user gives to a source that is captured from an outbox."""

    captured: str | None = None
    event: str | None = None
    headers: str | Sequence[str] = ()
    delete: bool = False

    def read(self, title: str) -> CapturedOutboxFrom | None:
        """Return where a source is captured from, if it is."""
        if self.captured is None:
            if self.event is not None or self.headers or self.delete:
                hint = 'event, headers and delete are of outboxes: captured="crm.outbox"'
                raise PipelineError(f"{title} has settings of an outbox, and is not captured", hint=hint)
            return None
        if self.event is not None and not (isinstance(self.event, str) and self.event):
            hint = 'name the column that holds it as JSON, as in event="payload"'
            raise PipelineError(f"event of {title} cannot be {self.event!r:.60}", hint=hint)
        names = _capture_and_table(title, self.captured, "crm.outbox")
        return CapturedOutboxFrom(*names, self.event, self._headers(title), bool(self.delete))

    def _headers(self, title: str) -> tuple[str, ...]:
        names = listed(self.headers)
        for name in names:
            if not isinstance(name, str) or not name or names.count(name) > 1:
                hint = 'name columns of the outbox, as in headers=["trace_id", "kind"]'
                raise PipelineError(f"headers of {title} cannot be {self.headers!r:.60}", hint=hint)
            if name in OWN_HEADERS:
                hint = "give the column another name, or leave it out: " + ", ".join(OWN_HEADERS)
                raise PipelineError(
                    f'header "{name}" of {title} is one that every captured event has', hint=hint
                )
        return names


def with_commit_time(schema: str | pa.Schema, event_time: str | None) -> tuple[pa.Schema, str]:
    """Return the columns and the event time of a captured table: that of its commits, if it names none."""
    columns = schemas.read(schema)
    if event_time is not None:
        return columns, event_time
    if COMMITTED in columns.names:
        raise PipelineError(
            f'column "{COMMITTED}" is the time of the commit, which every captured table has',
            hint=f'leave it out, or make it the event time: event_time="{COMMITTED}"',
        )
    return columns.append(pa.field(COMMITTED, schemas.TIMESTAMP)), COMMITTED


def check_own_format(title: str, format: str, key_format: str | None) -> None:
    """Refuse a format of another program where a capture writes the records."""
    if format != JSON or key_format is not None:
        raise PipelineError(
            f"{title} is captured, so it has no format", hint="leave format and key_format out"
        )


def problems(
    inputs: Sequence[Source | Table], captures: Sequence[CaptureDeclaration]
) -> Iterator[PipelineError]:
    """Yield what keeps inputs from following a capture: it is not there, or two follow one table."""
    names, first = {capture.name for capture in captures}, dict[tuple[str, str], Source | Table]()
    for table in inputs:
        origin = table.captured
        if origin is None:
            continue
        if origin.capture not in names:
            hint = (
                nearest(origin.capture, names) or 'declare it, as in shop.capture("crm", "sqlite:./crm.db")'
            )
            yield PipelineError(
                f'{table.title} follows no capture "{origin.capture}"', location=table.location, hint=hint
            )
        other = first.setdefault((origin.capture, origin.table), table)
        if other is not table:
            yield PipelineError(
                f"{table.title} captures the table of {other.title}",
                location=table.location,
                hint=f'read "{other.name}" in both places',
            )


def absolute_url(url: str) -> str:
    """Return a URL in which a file's path is absolute: a program may go elsewhere.

    >>> absolute_url("sqlite:/srv/crm.db"), absolute_url("mysql://shop@db/shop")
    ('sqlite:/srv/crm.db', 'mysql://shop@db/shop')
    """
    scheme, _, rest = url.partition(":")
    return (
        f"sqlite:{os.path.abspath(rest.removeprefix('//'))}" if scheme.lower() == "sqlite" and rest else url
    )


def check_capture(title: str, url: object, on_error: object) -> None:
    """Refuse a URL of no database that can be captured, and settings that there are not."""
    scheme = url.partition(":")[0].lower() if isinstance(url, str) else ""
    if scheme not in SCHEMES:
        use = 'use "postgresql://user@host/database", "mysql://user@host/database" or "sqlite:./app.db"'
        hint = nearest(scheme, SCHEMES) or use
        # What has no scheme is not shown: it may be settings with a password.
        shown = f' "{scheme}:"' if isinstance(url, str) and ":" in url and scheme.isalnum() else ""
        raise PipelineError(f"{title} has no database{shown} that can be captured", hint=hint)
    if on_error not in get_args(OnMisfit):
        raise PipelineError(
            f'{title} has an unknown on_error "{on_error!s:.60}"', hint='use "stop" or "dead_letter"'
        )


def check_retained(title: str, most: object, alert: object) -> None:
    """Refuse limits of what a database may keep that are no numbers of bytes."""
    for name, value in (("max_retained", most), ("alert_retained", alert)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value <= 0):
            hint = f"give a number of bytes, as in {name}=10_000_000_000"
            raise PipelineError(f"{name} of {title} cannot be {value!r:.60}", hint=hint)
