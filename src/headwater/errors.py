"""Every error a user can meet: one lower-case line, then detail and hint sentences.

    HeadwaterError
    ├── UsageError            an argument that cannot be meant
    │   └── UnknownView
    ├── LogUnavailable        the log cannot be reached or used: path, permission, disk, broker
    │   └── LogRefused        it is there, and says no: waiting does not mend that
    │       ├── NotALog       the directory is something else, or of a newer format
    │       └── ClockWrong    clocks differ absurdly, so nothing is stamped or removed by age
    ├── DamagedLog            stored bytes do not match their checksum
    ├── TopicError            a topic's declaration is wrong
    │   ├── UnknownTopic
    │   │   └── TopicReplaced a topic of that name is there, and is not the one that was meant
    │   ├── TopicExists
    │   └── SchemaError       a DDL string or a schema change that is refused
    ├── RowError              a row does not fit its topic
    │   ├── RecordTooLarge
    │   └── UnreadableRecord  a stored record does not, or its event time cannot be computed
    ├── BufferFull            a producer with ``on_full="error"`` has no room
    ├── Fenced                a newer producer or group member has taken over
    ├── Conflict              an append is refused: another record came first
    ├── Rejected              a command is refused by what its key has become
    ├── OffsetLost            the records asked for are not there: no longer retained, or past the end
    ├── Behind                a view has not got as far as was asked, within the time
    ├── SinkUnavailable       a sink's target cannot be reached or used: path, permission, server
    │   ├── DiskFull          there is no room: others may still have some
    │   └── SinkRefused       it is there, and says no: waiting does not mend that
    ├── SourceUnavailable     a database that is captured cannot be reached or used
    │   └── SourceRefused     it is there, and says no: waiting does not mend that
    └── PipelineError         a pipeline is declared wrongly, or its code has failed
        └── InputLost         an input no longer holds what a node has to read next

Invariant: an error never carries a secret, and raising one leaves what is stored untouched.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class HeadwaterError(Exception):
    """What went wrong (`message`), what more is known (`detail`), what to do (`hint`)."""

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class UsageError(HeadwaterError):
    """An argument that cannot be meant."""


class UnknownView(UsageError):
    """No view, or no version of one, of that name."""


class LogUnavailable(HeadwaterError):
    """The log cannot be reached or used."""


class LogRefused(LogUnavailable):
    """The log is there and cannot be used, and waiting does not mend that: permissions, a wrong password."""


class NotALog(LogRefused):
    """The directory is something else than a log, or a log of a newer format."""


class ClockWrong(LogRefused):
    """The clocks that tell when a record is received differ so much that one must be wrong."""


class DamagedLog(HeadwaterError):
    """Stored bytes do not match their checksum; ``resume`` is the next readable offset, if any."""

    def __init__(self, message: str, *, detail: str, hint: str, resume: int | None):
        super().__init__(message, detail=detail, hint=hint)
        self.resume = resume


class TopicError(HeadwaterError):
    """A topic's declaration is wrong."""


class UnknownTopic(TopicError):
    """No topic of that name."""


class TopicReplaced(UnknownTopic):
    """A topic of that name is there, but it was made after the one that was meant was deleted."""


class TopicExists(TopicError):
    """A topic of that name is there already."""


class SchemaError(TopicError):
    """A schema that cannot be read, or a change of schema that is refused."""


class RowError(HeadwaterError):
    """A row does not fit its topic: number ``row`` of its batch, ``column`` and ``reason``, if known."""

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        row: int | None = None,
        column: str | None = None,
    ):
        full_detail = ": ".join(part for part in (f"row {row}" if row is not None else None, detail) if part)
        super().__init__(message, detail=full_detail or None, hint=hint)
        self.row = row
        self.column = column
        self.reason = detail


class RecordTooLarge(RowError):
    """A record is over the size limit."""


class UnreadableRecord(RowError):
    """A stored record does not fit its topic: the one at ``offset`` of ``partition``, with its ``value``."""

    def __init__(
        self, topic: str, place: tuple[int, int], reason: HeadwaterError, value: bytes | None = None
    ):
        self.partition, self.offset = place
        self.value = value
        super().__init__(
            f'record of topic "{topic}" cannot be read: partition {self.partition}, offset {self.offset}',
            detail=reason.message + (f"; {reason.detail}" if reason.detail else ""),
            hint=f"correct its producer; to leave the record out, go on at offset {self.offset + 1}",
        )


class BufferFull(HeadwaterError):
    """The producer's buffer has no room and its policy is to say so."""


class Fenced(HeadwaterError):
    """A newer producer of the same id, or another member of the group, has taken over."""


class Conflict(HeadwaterError):
    """An append is refused: a record that its ``condition`` excludes is at ``offset`` of ``partition``."""

    def __init__(
        self, message: str, *, detail: str, hint: str, condition: object, partition: int, offset: int
    ):
        super().__init__(message, detail=detail, hint=hint)
        self.condition = condition
        self.partition = partition
        self.offset = offset


class Rejected(HeadwaterError):
    """A command is refused, and nothing was written: ``why``, in the words of who decided."""

    def __init__(self, why: str, *, detail: str | None = None, hint: str | None = None):
        super().__init__(why, detail=detail, hint=hint)
        self.why = why


class OffsetLost(HeadwaterError):
    """The records asked for are not there: ``missed`` of them; the first that is has offset ``earliest``."""

    def __init__(self, message: str, *, detail: str, hint: str, missed: int, earliest: int):
        super().__init__(message, detail=detail, hint=hint)
        self.missed = missed
        self.earliest = earliest


class Behind(HeadwaterError):
    """A view has not got as far as was asked, within the time."""


class SinkUnavailable(HeadwaterError):
    """A sink's target cannot be reached or used: path, permission, disk, server."""


class DiskFull(SinkUnavailable):
    """What a sink or a pipeline keeps has no room on its disk."""


class SinkRefused(SinkUnavailable):
    """A sink's target says no, and waiting does not mend that: a wrong password, a table that is gone."""


class SourceUnavailable(HeadwaterError):
    """A database that is captured cannot be reached or used."""


class SourceRefused(SourceUnavailable):
    """A database is there and cannot be captured, and waiting does not mend that: rights, settings."""


class PipelineError(HeadwaterError):
    """A pipeline is declared wrongly, or its code failed; ``location`` is the user's own file and line."""

    def __init__(
        self, message: str, *, detail: str | None = None, hint: str | None = None, location: str | None = None
    ):
        full_detail = ": ".join(part for part in (location, detail) if part)
        super().__init__(message, detail=full_detail or None, hint=hint)
        self.location = location


class InputLost(PipelineError):
    """An input no longer holds what a node has to read next: another topic, or records that are gone."""


def is_transient(error: HeadwaterError | None) -> bool:
    """Tell whether an error may pass by itself: something is away, and has not said no."""
    away = isinstance(error, SinkUnavailable | LogUnavailable)
    return away and not isinstance(error, SinkRefused | LogRefused)


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the hint ``did you mean "…"?`` for the closest candidate, or None."""
    close = difflib.get_close_matches(word, list(candidates), n=1)
    return f'did you mean "{close[0]}"?' if close else None
