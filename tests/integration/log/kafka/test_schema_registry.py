"""Records that name their schema in a registry, written by confluent-kafka's own serializers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from typing import Any

import orjson
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from headwater import topic as topics
from headwater.errors import LogRefused, LogUnavailable, RowError, UsageError
from headwater.log import Log
from headwater.log.kafka.config import Config
from headwater.log.kafka.schema_registry import SchemaRegistry
from headwater.log.open import open as open_log
from http_thread import serving
from kafka_kit import consume, make_topic, produce, rows

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
F = descriptor_pb2.FieldDescriptorProto
JSON_ORDER = '{"title": "order", "type": "object", "properties": {"id": {"type": "integer"}}}'


def record(name: str, /, **types: Any) -> str:
    fields = [{"name": each, "type": kind} for each, kind in types.items()]
    return orjson.dumps({"type": "record", "name": name, "fields": fields}).decode()


@pytest.fixture
def client(schema_registry: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": schema_registry}) as opened:
        yield opened


@pytest.fixture
def log(kafka_broker: str, schema_registry: str) -> Iterator[Log]:
    with open_log(f"kafka://{kafka_broker}?schema.registry.url={schema_registry}") as opened:
        yield opened


def written(serialize: Callable[..., Any], topic: str, value: Any, field: str = MessageField.VALUE) -> bytes:
    return bytes(serialize(value, SerializationContext(topic, field)))


@pytest.mark.kafka
def test_avro_of_several_versions_in_one_partition(
    log: Log, client: SchemaRegistryClient, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name)
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    old = AvroSerializer(client, record("Order", id="int", name="string"))
    tags = {"type": "array", "items": "string"}
    new = AvroSerializer(
        client, record("Order", at=["null", millis], id="long", name=["null", "string"], tags=tags)
    )
    values = [
        written(old, name, {"id": 1, "name": "a"}),
        written(new, name, {"id": 2**40, "name": None, "at": NOON, "tags": ["x"]}),
        written(old, name, {"id": 3, "name": "c"}),
    ]
    produce(kafka_broker, name, [{"value": value} for value in values])
    log.read_as(topics.create(name, "id BIGINT, name STRING, at TIMESTAMP", event_time="at", format="avro"))
    assert rows(log, name) == [
        {"id": 1, "name": "a", "at": None},
        {"id": 2**40, "name": None, "at": NOON},
        {"id": 3, "name": "c", "at": None},
    ]
    assert [row["_occurred"] for row in rows(log, name, meta=True)] == [None, NOON, None]


@pytest.mark.kafka
def test_avro_that_refers_to_another_subject_in_key_and_value(
    log: Log, client: SchemaRegistryClient, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name)
    subject = f"place-{uuid.uuid4().hex[:8]}"
    client.register_schema(subject, Schema(record("Place", city="string"), "AVRO"))
    reference = SchemaReference("Place", subject, 1)
    value = AvroSerializer(client, Schema(record("Order", n="int", place="Place"), "AVRO", [reference]))
    key = AvroSerializer(client, '"long"')
    records = [
        {
            "key": written(key, name, 7, MessageField.KEY),
            "value": written(value, name, {"n": 1, "place": {"city": "Bern"}}),
        },
        {"key": written(key, name, 8, MessageField.KEY), "value": None},
    ]
    produce(kafka_broker, name, records)
    log.adopt_topic(
        name, "id BIGINT, n INT, place STRUCT<city: STRING>", key="id", format="avro", key_format="avro"
    )
    assert rows(log, name) == [
        {"id": 7, "n": 1, "place": {"city": "Bern"}},
        {"id": 8, "n": None, "place": None},
    ]


@pytest.mark.kafka
def test_rows_that_are_appended_here_are_avro_to_others(
    log: Log, client: SchemaRegistryClient, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name)
    log.adopt_topic(
        name,
        "id BIGINT NOT NULL, at TIMESTAMP, price DECIMAL(9,2), tags ARRAY<STRING>",
        key="id",
        format="avro",
    )
    sent = [
        {"id": 7, "at": NOON, "price": Decimal("1.50"), "tags": ["a", None]},
        {"id": 8, "at": None, "price": None, "tags": None},
    ]
    with log.producer(name, id="till") as producer:
        producer.send_batch(sent)
    read = AvroDeserializer(client)
    context = SerializationContext(name, MessageField.VALUE)
    messages = consume(kafka_broker, name, 2)
    assert [read(message.value(), context) for message in messages] == sent
    assert [message.key() for message in messages] == [b"7", b"8"]
    assert rows(log, name) == sent


@pytest.mark.kafka
def test_rows_are_appended_with_the_schema_that_the_topic_has_or_refused(
    log: Log, client: SchemaRegistryClient, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name)
    client.register_schema(f"{name}-value", Schema(record("Order", id="int", name="string"), "AVRO"))
    log.adopt_topic(name, "name STRING, id BIGINT", format="avro")
    with log.producer(name) as producer:
        producer.send({"id": 7, "name": "a"})
    [message] = consume(kafka_broker, name, 1)
    found = AvroDeserializer(client)(message.value(), SerializationContext(name, MessageField.VALUE))
    assert found == {"id": 7, "name": "a"}
    for row in ({"id": 2**40, "name": "a"}, {"id": 1}):
        with log.producer(name) as producer:
            producer.send(row)
            with pytest.raises(RowError, match="cannot be written with its schema"):
                producer.flush()
    assert rows(log, name) == [{"name": "a", "id": 7}]


@pytest.mark.kafka
def test_json_with_a_schema(log: Log, client: SchemaRegistryClient, kafka_broker: str, name: str) -> None:
    make_topic(kafka_broker, name)
    value = written(JSONSerializer(JSON_ORDER, client), name, {"id": 7})
    produce(kafka_broker, name, [{"value": value}])
    log.read_as(topics.create(name, "id BIGINT", format="json_schema"))
    assert rows(log, name) == [{"id": 7}]


@pytest.mark.kafka
def test_protobuf_with_references_and_a_message_inside_of_another(
    log: Log, client: SchemaRegistryClient, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name)
    package = f"p{uuid.uuid4().hex[:8]}"  # files are known to all of the process by their names
    place = descriptor_pb2.FileDescriptorProto(
        name=f"{package}/place.proto", package=package, syntax="proto3"
    )
    field(place.message_type.add(name="Place"), "city", 1, F.TYPE_STRING)
    shop = descriptor_pb2.FileDescriptorProto(name=f"{package}/shop.proto", package=package, syntax="proto3")
    shop.dependency.extend([place.name, "google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"])
    field(shop.message_type.add(name="Other"), "x", 1, F.TYPE_INT32)
    outer = shop.message_type.add(name="Outer")
    order = outer.nested_type.add(name="Order")
    field(order, "id", 1, F.TYPE_INT64)
    field(order, "place", 2, F.TYPE_MESSAGE, f".{package}.Place")
    field(order, "at", 3, F.TYPE_MESSAGE, ".google.protobuf.Timestamp")
    field(order, "note", 4, F.TYPE_MESSAGE, ".google.protobuf.StringValue")
    pool = descriptor_pool.Default()
    for each in (place, shop):
        pool.Add(each)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.Outer.Order"))
    serialize = ProtobufSerializer(kind, client, {"use.deprecated.format": False})
    full = kind(id=2**40)
    full.place.city, full.note.value = "Bern", ""
    full.at.FromDatetime(NOON)
    produce(kafka_broker, name, [{"value": written(serialize, name, each)} for each in (full, kind())])
    columns = "id BIGINT, place STRUCT<city: STRING>, at TIMESTAMP, note STRING, missing INT"
    log.read_as(topics.create(name, columns, format="protobuf"))
    assert rows(log, name) == [
        {"id": 2**40, "place": {"city": "Bern"}, "at": NOON, "note": "", "missing": None},
        {"id": 0, "place": None, "at": None, "note": None, "missing": None},
    ]


@pytest.mark.kafka
def test_protobuf_whose_schema_was_registered_as_text(
    log: Log, client: SchemaRegistryClient, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name)
    end = uuid.uuid4().hex[:8]
    place = 'syntax = "proto3"; package geo; message Place { string city = 1; }'
    client.register_schema(f"place-{end}", Schema(place, "PROTOBUF"))
    order = """
        syntax = "proto3"; package shop;
        import "geo/place.proto"; import "google/protobuf/timestamp.proto";
        enum State { NEW = 0; PAID = 1; }
        message Order {
            int64 id = 1; geo.Place place = 2; google.protobuf.Timestamp at = 3; State state = 4;
        }
    """
    reference = SchemaReference("geo/place.proto", f"place-{end}", 1)
    id = client.register_schema(f"{name}-value", Schema(order, "PROTOBUF", [reference]))
    value = b"\x08\x07\x12\x06\x0a\x04Bern\x20\x01"  # id 7, a place with a city, state 1
    produce(kafka_broker, name, [{"value": b"\0" + id.to_bytes(4, "big") + b"\0" + value}])
    guessed = log.guess_declaration(name)
    assert guessed is not None
    assert guessed.schema == "id BIGINT, place STRUCT<city: STRING>, at TIMESTAMP, state STRING"
    log.read_as(guessed.declared())
    assert rows(log, name) == [{"id": 7, "place": {"city": "Bern"}, "at": None, "state": "PAID"}]


def field(message: Any, name: str, number: int, kind: int, type_name: str = "") -> None:
    made = message.field.add(name=name, number=number, type=kind, label=F.LABEL_OPTIONAL)
    if type_name:
        made.type_name = type_name


@pytest.mark.kafka
def test_a_schema_that_the_registry_has_not_or_has_of_another_kind_is_a_bad_record(
    log: Log, client: SchemaRegistryClient, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name)
    good = AvroSerializer(client, record("Order", id="int"))
    json = JSONSerializer(JSON_ORDER, client)
    values = [written(good, name, {"id": 1}), b"\0\0\1\0\0x", written(json, name + "j", {}), b"{}"]
    produce(kafka_broker, name, [{"value": value} for value in values])
    log.read_as(topics.create(name, "id BIGINT", format="avro"))
    reading = log.read(name)
    assert next(reading).to_pylist() == [{"id": 1}]
    with pytest.raises(RowError, match="offset 1") as told:
        next(reading)
    assert "the schema registry has no schema 65536" in str(told.value.detail)
    with pytest.raises(RowError, match="offset 2") as told:
        rows(log, name, start=2)
    assert "is JSON, not AVRO" in str(told.value.detail)
    with pytest.raises(RowError, match="offset 3"):
        rows(log, name, start=3)


SECRET = "hush-4711"


@contextmanager
def registry(url: str, **more: str) -> Iterator[SchemaRegistry]:
    options = {f"schema.registry.{name.replace('_', '.')}": value for name, value in more.items()}
    opened = SchemaRegistry(Config(f"kafka://nobody:1?schema.registry.url={url}", options))
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def answering(status: int) -> Iterator[str]:
    """Serve one answer to everything: what a real registry says on bad days, and not on demand."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(orjson.dumps({"error_code": status, "message": f"no, alice:{SECRET}"}))

        def log_message(self, *_: Any) -> None: ...

    with serving(Handler) as url:
        yield url


@pytest.mark.parametrize(
    ("status", "kind"), [(401, LogRefused), (403, LogRefused), (404, LogRefused), (503, LogUnavailable)]
)
def test_a_registry_that_says_no_or_is_ill_is_told_as_such_and_without_secrets(
    status: int, kind: type[Exception]
) -> None:
    with answering(status) as url:
        options = {"basic_auth_user_info": f"alice:{SECRET}", "max_retries": "0"}
        with registry(url, **options) as asked, pytest.raises(kind) as told:
            asked.get(1, "AVRO")
        assert url in str(told.value)
        assert SECRET not in str(told.value)


def test_a_registry_that_is_away_is_waited_for_and_not_taken_for_a_bad_record() -> None:
    away = pytest.raises(LogUnavailable, match="cannot fetch schema 1")
    with registry("http://127.0.0.1:9", max_retries="0") as asked, away:
        asked.get(1, "AVRO")


def test_options_that_the_client_does_not_know_are_refused_without_their_values() -> None:
    refused = pytest.raises(UsageError, match="invalid options of the schema registry")
    with registry("http://127.0.0.1:9", basic_auth_user_info=SECRET) as asked, refused as told:
        asked.get(1, "AVRO")
    assert SECRET not in str(told.value)


def test_a_schema_is_fetched_once(client: SchemaRegistryClient, schema_registry: str) -> None:
    id = client.register_schema(f"s-{uuid.uuid4().hex[:8]}", Schema('"string"', "AVRO"))
    with registry(schema_registry) as asked:
        first = asked.get(id, "AVRO")
        asked.close()
        asked._config.schema_registry.clear()
        assert asked.get(id, "AVRO") is first
