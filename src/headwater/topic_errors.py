"""What is said of a topic that is not the one that was meant: unknown, replaced, or declared otherwise.

Invariant: a message names the topic and what to do; nothing is opened or read to write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headwater import wire_format
from headwater.errors import TopicError, TopicReplaced, UnknownTopic, nearest
from headwater.topic import SIDE_SUFFIXES, Topic

MOST_LISTED = 10
"""Topics that an error names."""
OPEN = ("what is open", "open it again to go on with the topic that is there now")
"""What ``replaced`` says to those who had the old topic open: what is of it, and what to do."""


def two_declarations(topic: Topic) -> TopicError:
    """Return the error for a topic that one pipeline declares in different ways."""
    return TopicError(
        f'topic "{topic.name}" is declared in two ways',
        hint="declare it once, with all columns that are read, and select them in the nodes",
    )


def same(existing: Topic, declared: Topic) -> bool:
    """Tell whether a declaration is that of a topic which exists, as it is now."""
    return replace(existing, schemas=existing.schemas[-1:], id=declared.id) == declared


def unknown(name: str, names: Sequence[str]) -> UnknownTopic:
    """Return the error for a topic that is not there."""
    if name.endswith(SIDE_SUFFIXES):  # made by a pipeline when it needs them
        hint = nearest(name, [each for each in names if each.endswith(SIDE_SUFFIXES)])
        return UnknownTopic(
            f'no topic "{name}"', hint=hint or "it is made with the first row that goes there"
        )
    if near := nearest(name, names):
        return UnknownTopic(f'no topic "{name}"', hint=near)
    declared = [each for each in names if not each.endswith(SIDE_SUFFIXES)]
    listed = ", ".join(declared[:MOST_LISTED]) + (", …" if len(declared) > MOST_LISTED else "")
    return UnknownTopic(
        f'no topic "{name}"',
        detail=f"there are: {listed}" if declared else "there are no topics yet",
        hint=_how_it_is_made(name),
    )


def _how_it_is_made(name: str) -> str:
    if "." in name:  # as a pipeline names the topics of its streams
        return f'if "{name}" is a stream of a pipeline, `headwater run` makes it'
    return f'make it with `headwater topic create {name} --schema "…"`'


def formats_text(topic: Topic) -> str:
    """Return in words how a topic's records are written."""
    value = f"its values are {wire_format.name(topic.format)}"
    return value if topic.key_format is None else f"{value}, its keys {wire_format.name(topic.key_format)}"


def different(existing: Topic, declared: Topic) -> str:
    """Return in words where a declaration differs from that of a topic which exists."""
    was, asked = existing.settings(), declared.settings()
    names = [name for name in was if was[name] != asked[name]]
    return "; ".join(f"{name}: it has {_said(was[name])}, asked for {_said(asked[name])}" for name in names)


def _said(value: Any) -> str:
    return ", ".join(value) or "none" if isinstance(value, list) else "none" if value is None else str(value)


def replaced(topic: Topic, id: str, what: str, hint: str) -> TopicReplaced:
    """Return the error for a topic that is not the one with that identity, which ``what`` is of."""
    return TopicReplaced(
        f'topic "{topic.name}" is not the one that {what} is of',
        detail="it was deleted and made again, or this is another log: "
        f"the identity that was meant is {id}, the one found is {topic.id}",
        hint=hint,
    )


def replaced_for(group: str, topic: Topic, id: str) -> TopicReplaced:
    """Return the error for a group whose offsets are of an earlier topic of the same name."""
    hint = f"`headwater seek {group} {topic.name} --to earliest` makes it read this topic from its beginning"
    return replaced(topic, id, f'what group "{group}" has committed', hint)
