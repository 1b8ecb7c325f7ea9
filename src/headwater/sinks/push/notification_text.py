"""What a notification says: title, text and a link, made of a row by templates, and one for many.

Invariant: a notification fits into what push services take; a deletion says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from headwater.sinks.delivery.row_message import MessagePerRow
from headwater.sinks.delivery.template import TextTemplate, one_line

_LARGEST = 3000
"""Bytes of a notification, which gets an id besides."""
_LARGEST_LINK = 1000


@dataclass(frozen=True)
class NotificationText(MessagePerRow):
    """Makes ``{"title":…,"body":…,"url":…}`` of a row."""

    title: TextTemplate
    text: TextTemplate
    link: TextTemplate

    def message(self, row: dict[str, Any]) -> bytes:
        """Return the notification that a row becomes."""
        return _fitting(self.title.render_line(row), self.text.render(row), self._link(row))

    def summary(self, bodies: list[bytes], count: int) -> bytes:
        """Return one notification that counts many."""
        titles = [orjson.loads(body)["title"] for body in bodies]
        return _fitting(f"{count:,} notifications", "\n".join(titles), "")

    def _link(self, row: dict[str, Any]) -> str:
        """Return the link whole, or none: one that is cut would lead elsewhere."""
        link = one_line(self.link.render(row), _LARGEST)
        return link if len(link.encode()) <= _LARGEST_LINK else ""


def _fitting(title: str, text: str, link: str) -> bytes:
    """Return a notification, its text cut until it fits."""
    text = text[:_LARGEST]
    while len(made := orjson.dumps({"title": title, "body": text, "url": link})) > _LARGEST and text:
        text = text[: len(text) * 3 // 4]
    return made
