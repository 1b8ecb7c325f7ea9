"""Topics that a way in writes to: made where there is none, checked where there is one.

Invariant: a topic that somebody has declared is never changed; one that lacks a column is refused before
anything is received.
"""

from __future__ import annotations

from headwater import schema as schemas
from headwater.errors import TopicError
from headwater.log import Log, Topic


def declare_topic(log: Log, name: str, schema: str, *, key: str = "", event_time: str | None = None) -> Topic:
    """Return a topic that has the columns of a schema: the one that is there, or a new one."""
    if name not in {topic.name for topic in log.topics()}:
        return log.create_topic(name, schema, key=key or (), event_time=event_time)
    topic, wanted = log.topic(name), schemas.read(schema)
    for field in wanted:
        if field.name not in topic.schema.names or topic.schema.field(field.name).type != field.type:
            raise TopicError(
                f'topic "{name}" has no column "{field.name}" of type {schemas.type_name(field)}',
                detail=f"what comes in here has the columns {schema}",
                hint="name another topic with --topic: one that is not there is made",
            )
    return topic
