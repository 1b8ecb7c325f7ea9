"""How a queue behaves: order, priorities, delays, time to live, deliveries.

A setting that differs from message to message names a column of the topic, or a header as
``"header:NAME"``. Invariant: settings that exist can be meant; whether they fit a topic, ``check`` says.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Literal

import pyarrow as pa

from headwater.durations import interval, interval_text
from headwater.errors import UsageError, nearest
from headwater.topic import Topic

HEADER = "header:"
MAX_DELIVERIES = 5
"""As many as Kafka's brokers allow by themselves."""
Purpose = Literal["priority", "delay", "time_to_live"]


@dataclass(frozen=True)
class QueueSettings:
    """How a queue behaves; given to ``Log.queue`` when it is made, and kept with it.

    - ``ordered=False``: whether a key's next message waits until the one before is acknowledged, rejected or
      expired.
    - ``priority=None``: a column of whole numbers, or ``"header:NAME"``: messages with higher ones come
      first, those without one count as 0.
    - ``delay=None``: before when a message is not delivered: an interval after its receipt, for all
      (``"5 minutes"``), a TIMESTAMP column, a column of numbers (seconds after its receipt), or
      ``"header:NAME"`` with a time or an interval.
    - ``time_to_live=None``: after when it is not delivered any more, but dead: the same.
    - ``max_deliveries=5``: how often it is delivered before it is dead.
    - ``visible_after="30 seconds"``: how long a consumer has a message to itself, unless ``receive`` says
      otherwise.

    >>> QueueSettings(delay="send_at", max_deliveries=3).delay
    'send_at'
    """

    ordered: bool = False
    priority: str | None = None
    delay: str | None = None
    time_to_live: str | None = None
    max_deliveries: int = MAX_DELIVERIES
    visible_after: str | timedelta = "30 seconds"

    def __post_init__(self) -> None:
        if not isinstance(self.ordered, bool):
            raise UsageError(f"ordered is True or False, not {self.ordered!r:.60}")
        for name in ("priority", "delay", "time_to_live"):
            _check_text(name, getattr(self, name))
        if type(self.max_deliveries) is not int or not 1 <= self.max_deliveries <= 1000:
            raise UsageError(
                f"max_deliveries is a whole number from 1 to 1000, not {self.max_deliveries!r:.60}"
            )
        text = interval_text(interval(self.visible_after))
        object.__setattr__(self, "visible_after", text)  # one form, so that settings can be compared

    @property
    def shape(self) -> tuple[bool, str | None, str | None, str | None]:
        """What the stored state of a queue depends on."""
        return self.ordered, self.priority, self.delay, self.time_to_live

    @property
    def plain(self) -> bool:
        """Whether messages are delivered in the order of their receipt, and at once."""
        return not any(self.shape)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as they are stored."""
        return asdict(self)


def _check_text(name: str, setting: object) -> None:
    if setting is not None and not isinstance(setting, str):
        interval_hint = "" if name == "priority" else ', or an interval as in "5 minutes"'
        raise UsageError(
            f"{name} is a text, not {setting!r:.60}",
            hint=f'name a column, or a header as "{HEADER}NAME"{interval_hint}',
        )


def fixed(setting: str | None) -> timedelta | None:
    """Return the length of time that a setting is for all messages; None where it names a column or header.

    >>> fixed("5 minutes"), fixed("send_at")
    (datetime.timedelta(seconds=300), None)
    """
    try:
        return None if setting is None else interval(setting)
    except UsageError:
        return None


def check(settings: QueueSettings, topic: Topic) -> None:
    """Refuse settings that a topic's records cannot have."""
    if settings.ordered and not topic.key:
        raise UsageError(
            f'queue over topic "{topic.name}" cannot be ordered: its records have no key',
            hint="create the topic with key=",
        )
    _check_named("priority", settings.priority, topic)
    for purpose, setting in (("delay", settings.delay), ("time_to_live", settings.time_to_live)):
        if fixed(setting) is None:
            _check_named(purpose, setting, topic)


def _check_named(purpose: str, setting: str | None, topic: Topic) -> None:
    if setting is None or (setting.startswith(HEADER) and len(setting) > len(HEADER)):
        return
    if setting not in topic.schema.names:
        known = topic.schema.names
        raise UsageError(
            f'{purpose} of a queue over topic "{topic.name}" cannot be "{setting:.60}"',
            detail=f"columns: {', '.join(known)}",
            hint=nearest(setting, known) or f'name a column, a header as "{HEADER}NAME", or an interval',
        )
    kind = topic.schema.field(setting).type
    whole, number = pa.types.is_integer(kind), pa.types.is_floating(kind) or pa.types.is_integer(kind)
    if not (whole if purpose == "priority" else number or pa.types.is_timestamp(kind)):
        wanted = "whole numbers" if purpose == "priority" else "TIMESTAMP, or of numbers (seconds)"
        raise UsageError(
            f'{purpose} of a queue over topic "{topic.name}" cannot be column "{setting}"',
            detail=f"it is {kind}; it must be of {wanted}",
        )
