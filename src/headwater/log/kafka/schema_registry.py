"""The schema registry beside a broker: which schema a record was written with.

Options are those of confluent-kafka's own client, with ``schema.registry.`` before their names. A schema
never changes, so each is fetched once. Invariant: a registry that is away is told as such, and never
taken for a schema that is not there; no error carries a secret.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headwater.errors import HeadwaterError, LogRefused, LogUnavailable, RowError, TopicError, UsageError
from headwater.formats.writer_schema import SchemaReference, TargetSubject, WriterSchema
from headwater.log.kafka.config import SCHEMA_REGISTRY, Config

_DEFAULTS = {"timeout": 10, "max.retries": 1}
_FORMS = {"PROTOBUF": "serialized"}
"""In which form a kind of schema is asked for, where its text would have to be compiled first."""
_NO_SCHEMA = 40403
"""How a registry says that there is no schema of an id."""
_NO_SUBJECT = 40401
"""How it says that there is nothing under a name."""
_NUMBERS = ("timeout", "max.retries", "cache.capacity", "retries.wait.ms", "retries.max.wait.ms")


class SchemaRegistry:
    """Fetches schemas by their ids."""

    def __init__(self, config: Config):
        self._config = config
        self._lock = threading.Lock()
        self._found: dict[tuple[int | str, str], WriterSchema] = {}
        self._subjects: dict[str, TargetSubject] = {}
        self._client: Any = None

    def check(self, topic: str | None) -> None:
        """Refuse to read a topic's records where nothing says which registry has their schemas."""
        if not self._config.schema_registry.get("url"):
            needed = "" if topic is None else f', and the records of topic "{topic}" need one'
            raise UsageError(
                f"no schema registry is named{needed}",
                hint=f'name it beside the broker: "{self._config.url}?{SCHEMA_REGISTRY}url=http://host:8081"',
            )

    def kind(self, id: int | str) -> str:
        """Return which kind of schema an id is of."""
        with self._lock, self._translating(f"schema {id}"):
            return str(self._schema(id, None).schema_type)

    def get(self, id: int | str, kind: str) -> WriterSchema:
        """Return a schema of a kind."""
        with self._lock:
            if (id, kind) not in self._found:
                self._found[id, kind] = self._fetched(id, kind)
            return self._found[id, kind]

    def subject(self, name: str, otherwise: Callable[[], str]) -> TargetSubject:
        """Return the newest Avro schema of a subject; register another where it has none."""
        with self._lock:
            if name not in self._subjects:
                with self._translating(f'the schema of subject "{name}"'):
                    self._subjects[name] = self._newest(name) or self._registered(name, otherwise())
            return self._subjects[name]

    def _newest(self, name: str) -> TargetSubject | None:
        try:
            found = self._opened().get_latest_version(name)
        except Exception as error:
            if getattr(error, "error_code", None) == _NO_SUBJECT:
                return None
            raise
        if found.schema.schema_type != "AVRO":
            kind = found.schema.schema_type
            raise TopicError(f'subject "{name}" of the schema registry is {kind}, not AVRO')
        return TargetSubject(found.schema_id, self._with_references(found.schema, "AVRO"))

    def _registered(self, name: str, text: str) -> TargetSubject:
        from confluent_kafka.schema_registry import Schema

        return TargetSubject(self._opened().register_schema(name, Schema(text, "AVRO")), WriterSchema(text))

    def close(self) -> None:
        """Close the connection; it is made again when it is needed."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _fetched(self, id: int | str, kind: str) -> WriterSchema:
        with self._translating(f"schema {id}"):
            schema = self._schema(id, _FORMS.get(kind))
            if schema.schema_type != kind:
                raise RowError(f"schema {id} of the registry is {schema.schema_type}, not {kind}")
            return self._with_references(schema, kind)

    def _schema(self, id: int | str, form: str | None) -> Any:
        client = self._opened()
        ask = client.get_schema if isinstance(id, int) else client.get_schema_by_guid
        return ask(id, fmt=form)

    @contextmanager
    def _translating(self, what: str) -> Iterator[None]:
        try:
            yield
        except HeadwaterError:
            raise
        except Exception as error:  # of HTTP, TLS, JSON, or the registry's own
            raise self._translated(error, what) from None

    def _with_references(self, schema: Any, kind: str) -> WriterSchema:
        found = [
            SchemaReference(each.name, self._with_references(self._version(each, kind).schema, kind))
            for each in schema.references or ()
        ]
        return WriterSchema(schema.schema_str, tuple(found))

    def _version(self, reference: Any, kind: str) -> Any:
        return self._opened().get_version(reference.subject, reference.version, True, _FORMS.get(kind))

    def _opened(self) -> Any:
        if self._client is None:
            self.check(None)
            options = _DEFAULTS | self._config.schema_registry
            self._client = _client(
                {name: _number(name, value) for name, value in options.items()}, self._config
            )
        return self._client

    def _translated(self, error: Exception, what: str) -> HeadwaterError:
        """Return why a schema is not there, or why nobody knows."""
        status = getattr(error, "http_status_code", None)
        detail = self._config.scrubbed(f"{error!s:.300}" or type(error).__name__)
        if getattr(error, "error_code", None) == _NO_SCHEMA:
            return RowError(f"the schema registry has no {what}", detail=detail)
        doing = f"cannot fetch {what} from the registry at {self._config.schema_registry['url']}"
        if status is None or status >= 500 or status in (408, 429):
            hint = "check that the registry runs and can be reached"
            return LogUnavailable(doing, detail=detail, hint=hint)
        hint = f'check "{SCHEMA_REGISTRY}url", "{SCHEMA_REGISTRY}basic.auth.user.info" and the access rules'
        return LogRefused(doing, detail=detail, hint=hint)


def _number(name: str, value: Any) -> Any:
    """Return an option as the client takes it: from a URL or a file all are text."""
    return float(value) if name in _NUMBERS[:1] else int(value) if name in _NUMBERS else value


def _client(options: dict[str, Any], config: Config) -> Any:
    try:
        from confluent_kafka.schema_registry import SchemaRegistryClient
    except ImportError as error:
        hint = "run `pip install 'headwater[kafka]'`"
        raise LogRefused("schema registries are not installed", detail=str(error), hint=hint) from None
    try:
        return SchemaRegistryClient(options)
    except Exception as error:  # ValueError, OSError of a certificate, and others
        raise UsageError(
            "invalid options of the schema registry",
            detail=config.scrubbed(f"{error!s:.300}"),
            hint=f'they are the client\'s own, with "{SCHEMA_REGISTRY}" before their names',
        ) from None
