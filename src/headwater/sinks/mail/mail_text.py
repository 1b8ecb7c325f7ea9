"""What a mail says: subject and text, made of a row by templates, and one for many.

Invariant: a subject is one line; a deletion says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from headwater.sinks.delivery.row_message import MessagePerRow
from headwater.sinks.delivery.template import TextTemplate
from headwater.values.fitting import TargetSchema


@dataclass(frozen=True)
class MailText(MessagePerRow):
    """Makes ``{"subject":…,"text":…}`` of a row."""

    shape: TargetSchema
    subject: TextTemplate
    text: TextTemplate

    def message(self, row: dict[str, Any]) -> bytes:
        """Return the mail that a row becomes."""
        return orjson.dumps({"subject": self.subject.render_line(row), "text": self.text.render(row)})

    def summary(self, bodies: list[bytes], count: int) -> bytes:
        """Return one message that counts many, with the subjects of the first."""
        subjects = [orjson.loads(body)["subject"] for body in bodies]
        told = [f"{count:,} messages came faster than they may be sent. The first of them:", "", *subjects]
        more = [] if count <= len(subjects) else ["", f"… and {count - len(subjects):,} more"]
        return orjson.dumps(
            {"subject": f"{count:,} messages: {subjects[0]}, …", "text": "\n".join([*told, *more])}
        )


def every_column(columns: list[str]) -> TextTemplate:
    """Return the text that lists all columns."""
    escaped = {name: name.replace("{", "{{").replace("}", "}}") for name in columns}
    return TextTemplate("\n".join(f"{escaped[name]}: {{{name}}}" for name in columns))
