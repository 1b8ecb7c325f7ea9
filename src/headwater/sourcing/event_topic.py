"""The topic of a decider's events: made when it is first opened, and given columns as events get fields.

Invariant: a column never changes its type, and none is removed: events that are stored can be read for ever.
"""

from __future__ import annotations

from headwater import schema as schemas
from headwater.errors import SchemaError, UnknownTopic, UsageError
from headwater.log.interface import Log
from headwater.sourcing.event_schema import META, EventSchema
from headwater.topic import Topic


def prepared(log: Log, name: str, events: EventSchema, partitions: int) -> Topic:
    """Return the topic of a decider's events, made or extended where need be."""
    try:
        topic = log.topic(name)
    except UnknownTopic:
        return log.create_topic(name, events.ddl, key="key", event_time="recorded_at", partitions=partitions)
    if topic.key != ("key",) or not set(META) <= set(topic.schema.names):
        raise UsageError(
            f'topic "{name}" is not one of a decider\'s events',
            detail=f"its columns: {schemas.ddl(topic.schema)}",
            hint="give the decider another name",
        )
    wanted = schemas.parse(events.ddl)
    for field in wanted:
        if field.name in topic.schema.names and topic.schema.field(field.name).type != field.type:
            raise SchemaError(
                f'field "{field.name}" of decider "{name}" has another type in events that are stored',
                detail=f"{schemas.type_name(topic.schema.field(field.name))} there, "
                f"{schemas.type_name(field)} now",
                hint="give the field another name, the event a higher revision, and the old one an upcaster",
            )
    added = [field for field in wanted if field.name not in topic.schema.names]
    if not added:
        return topic
    columns = [schemas.ddl(topic.schema), *(f"{each.name} {events.columns[each.name]}" for each in added)]
    return log.alter_topic(name, schema=", ".join(columns))
