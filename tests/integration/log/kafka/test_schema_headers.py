"""Records that name their schema in a header, by its global id, written by confluent-kafka's own serializers.

The registry of the other tests gives schemas no such ids, so a few lines here answer as Confluent's does.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import orjson
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from headwater import topic as topics
from headwater.errors import RowError
from headwater.log import Log
from headwater.log.open import open as open_log
from http_thread import serving
from kafka_kit import make_topic, produce, rows

pytestmark = pytest.mark.kafka
IN_HEADER = {"schema.id.serializer": header_schema_id_serializer}
ORDER = '{"type": "record", "name": "order", "fields": [{"name": "id", "type": "long"}]}'
JSON_ORDER = '{"title": "order", "type": "object", "properties": {"id": {"type": "integer"}}}'


class GlobalIds(BaseHTTPRequestHandler):
    """Keeps what is registered, by its global id."""

    schemas: dict[str, dict[str, Any]]

    def do_POST(self) -> None:
        body = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
        guid = str(uuid.uuid5(uuid.NAMESPACE_OID, body["schema"]))
        subject = self.path.split("/")[2]
        known = {**body, "guid": guid, "id": len(self.schemas) + 1, "subject": subject, "version": 1}
        self._answer(200, self.schemas.setdefault(guid, known))

    def do_GET(self) -> None:
        asked = self.path.split("/")[-1].partition("?")[0]
        known = [each for guid, each in self.schemas.items() if asked in (guid, str(each["id"]))]
        self._answer(*((200, known[0]) if known else (404, {"error_code": 40403, "message": "none"})))

    def _answer(self, status: int, body: Any) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(orjson.dumps(body))

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(type("Handler", (GlobalIds,), {"schemas": {}})) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as opened:
        yield opened


@pytest.fixture
def log(kafka_broker: str, url: str) -> Iterator[Log]:
    with open_log(f"kafka://{kafka_broker}?schema.registry.url={url}") as opened:
        yield opened


def written(topic: str, value: tuple[Callable[..., Any], Any], key: Any = None) -> dict[str, Any]:
    """Return a record as a producer writes it: value and key, each with a serializer, and the headers."""
    headers: list[tuple[str, bytes]] = []
    made: dict[str, Any] = {"headers": headers}
    for field, each in ((MessageField.VALUE, value), (MessageField.KEY, key)):
        if each is not None:
            made[field] = each[0](each[1], SerializationContext(topic, field, headers))
    return made


def test_avro_with_its_schema_in_a_header_beside_such_with_it_before_the_value(
    log: Log, client: SchemaRegistryClient, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name)
    headed, key = (
        AvroSerializer(client, ORDER, conf=IN_HEADER),
        AvroSerializer(client, '"string"', conf=IN_HEADER),
    )
    prefixed = AvroSerializer(client, ORDER)
    records = [written(name, (each, {"id": n}), (key, f"k{n}")) for n, each in enumerate((headed, prefixed))]
    assert records[0]["value"] == b"\0"  # nothing but the number
    assert records[1]["value"][:1] == b"\0"
    produce(kafka_broker, name, records)
    columns = "k STRING, id BIGINT"
    log.read_as(topics.create(name, columns, key="k", format="avro", key_format="avro"))
    assert rows(log, name) == [{"k": "k0", "id": 0}, {"k": "k1", "id": 1}]


def message() -> Any:
    """Return a type of messages that lies behind another in its file, so that its path is no single zero."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="headed.proto", package="headed", syntax="proto3")
    file.message_type.add(name="Other")
    file.message_type.add(name="Order").field.add(
        name="id", number=1, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("headed.Order"))


@pytest.mark.parametrize("format", ["protobuf", "json_schema"])
def test_other_formats_with_their_schema_in_a_header(
    log: Log, client: SchemaRegistryClient, kafka_broker: str, name: str, format: str
) -> None:
    make_topic(kafka_broker, name)
    if format == "protobuf":
        order, conf = message(), {**IN_HEADER, "use.deprecated.format": False}
        record = written(name, (ProtobufSerializer(order, client, conf), order(id=7)))
    else:
        record = written(name, (JSONSerializer(JSON_ORDER, client, conf=IN_HEADER), {"id": 7}))
    produce(kafka_broker, name, [record] * 2)
    log.read_as(topics.create(name, "id BIGINT", format=format))
    assert rows(log, name) == [{"id": 7}] * 2


def test_a_global_id_that_the_registry_does_not_know_is_told(log: Log, kafka_broker: str, name: str) -> None:
    make_topic(kafka_broker, name)
    header = b"\1" + uuid.UUID(int=7).bytes
    produce(kafka_broker, name, [{"value": b"\0", "headers": [("__value_schema_id", header)]}])
    log.read_as(topics.create(name, "id BIGINT", format="avro"))
    with pytest.raises(RowError, match=f"no schema {uuid.UUID(int=7)}"):
        rows(log, name)
