"""Nodes: functions or queries whose rows become a stream, a view, or go to a target outside.

Each kind is a type, with the fields that only it has and the answers that differ from kind to kind.
What needs more than a declaration, as opening a node's sink, is decided in the engine by type, once for
each decision. Invariant: as for all declarations; and a node's checks open nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import pyarrow as pa

from headwater import topic as topics
from headwater.errors import PipelineError, nearest
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.sink_target import SinkTarget, TableName
from headwater.pipeline.statement import relations
from headwater.pipeline.targets import database
from headwater.schema import type_name
from headwater.sinks.delivery.declaration import OutboxPlace
from headwater.sinks.delivery.versions import DeliveryVersions
from headwater.sinks.sink import Sink
from headwater.sinks.versions import TargetVersions
from headwater.stores import limits
from headwater.topic import Cleanup, Topic
from headwater.values.keyed import KeyedSchema, declare

OnError = Literal["stop", "dead_letter"]
ON_ERROR: tuple[str, ...] = get_args(OnError)


@dataclass(frozen=True)
class NodeCode:
    """What a node computes: a function of its upstreams, or a SQL query."""

    upstreams: tuple[str, ...] = ()
    """Names, in the order of the function's parameters or of the query."""
    function: Callable[..., Any] | None = None
    statement: str | None = None
    """The query, where there is no function."""
    description: str = ""
    user_functions: tuple[Callable[..., Any], ...] = ()
    """What the function calls of the user's, where it is not the user's itself."""
    fixed_partitions: bool = False
    """Whether its upstreams must keep their number of partitions, by which the rows of a key are in order."""

    def resolved(self, names: Mapping[str, str]) -> Self:
        """Return it with the upstreams that a query reads; SQL does not mind capitals."""
        if self.statement is None:
            return self
        read = (names.get(name.casefold(), name) for name in relations(self.statement))
        return replace(self, upstreams=tuple(dict.fromkeys(read)))


@dataclass(frozen=True, kw_only=True)
class Node(Declaration):
    """A function of its upstreams, or a SQL query; what becomes of its rows is for its type to say."""

    shares_query: ClassVar[bool] = True
    """Whether it may run in one query with others, whose fate it then shares."""
    may_rekey_tables: ClassVar[bool] = True
    """Whether it may show a table under another key than the table's: whether it has every change."""

    code: NodeCode = NodeCode()
    on_error: OnError = "stop"

    @property
    def upstreams(self) -> tuple[str, ...]:
        """The names of what it reads."""
        return self.code.upstreams

    @property
    def description(self) -> str:
        """The docstring of its function."""
        return self.code.description

    @property
    def recompute_hint(self) -> str:
        """What a user does to have it computed anew."""
        return f"give the {self.kind} another name, under which it begins anew"

    @property
    def replacement_key(self) -> tuple[str, ...]:
        """The key by which a later row replaces an earlier one, if it does."""
        return ()

    def resolved(self, names: Mapping[str, str]) -> Self:
        """Return it with its upstreams as they are spelled."""
        return replace(self, code=self.code.resolved(names))

    def store_url(self, views: str | None) -> str | None:
        """Return the database that keeps its rows; None for the pipeline's own home, or no store."""
        return None

    def table_names(self, views: str | None) -> list[TableName]:
        """Return the tables and directories outside of the pipeline's home that it writes to."""
        return []

    def check_table_name(self, views: str | None) -> None:
        """Refuse a name that the store of its rows cannot have."""

    def check_named_columns(self, columns: pa.Schema) -> None:
        """Refuse settings that name a column which the result has not."""
        for column in self.key:
            self._check_named("key", column, columns)

    def check_storable(self, columns: pa.Schema) -> None:
        """Refuse columns that cannot be kept as its type keeps them, wherever that is."""

    def check_stored(self, columns: pa.Schema, views: str | None) -> None:
        """Refuse columns that the store of its rows cannot hold."""

    def derived_topic(self, columns: pa.Schema, event_time: str | None, cleanup: Cleanup) -> Topic | None:
        """Return the topic for results of these columns, checked, if it writes one."""
        return None

    def _check_named(self, setting: str, column: str, columns: pa.Schema) -> None:
        if column not in columns.names:
            raise PipelineError(
                f'{self.title} has no column "{column}", which its {setting} names',
                detail="its result has " + ", ".join(columns.names),
                hint=nearest(column, columns.names)
                or f"add the column to the result, or change the {setting}",
                location=self.location,
            )


@dataclass(frozen=True, kw_only=True)
class StreamNode(Node):
    """A node whose rows go to a topic of the log."""

    kind: ClassVar[str] = "stream"

    topic: str
    """The derived topic."""
    event_time: str | None = None
    partitions: int | None = None
    """Of the derived topic; None leaves them to the engine."""

    @property
    def verifiable(self) -> bool:
        """It is in the log."""
        return True

    @property
    def readable_topic(self) -> str:
        """The derived topic."""
        return self.topic

    @property
    def written_topic(self) -> str:
        """The derived topic."""
        return self.topic

    def derived_topic(self, columns: pa.Schema, event_time: str | None, cleanup: Cleanup) -> Topic:
        """Return the derived topic; the declared event time goes before that of the rows."""
        return topics.create(
            self.topic,
            columns,
            key=self.key,
            event_time=self.event_time or event_time,
            partitions=self.partitions or 1,
            cleanup=cleanup,
        )


@dataclass(frozen=True, kw_only=True)
class ViewNode(Node):
    """A node whose rows are a keyed table that is kept up to date."""

    kind: ClassVar[str] = "view"
    needs_key: ClassVar[bool] = True
    may_rekey_tables: ClassVar[bool] = False

    store: str | None = field(default=None, repr=False)
    """Where it is kept; None means where the pipeline keeps its views. It may hold a password."""
    order: str | None = None
    """The column in whose order it is read too."""

    @property
    def verifiable(self) -> bool:
        """It is in a store."""
        return True

    @property
    def has_versions(self) -> bool:
        """Its store keeps several."""
        return True

    @property
    def unreadable_hint(self) -> str:
        """What a user does to have its rows read by a node."""
        return f"{super().unreadable_hint}, and let a view of another name read it too"

    @property
    def recompute_hint(self) -> str:
        """What a user does to have it computed anew."""
        return _rebuild_hint(self)

    @property
    def replacement_key(self) -> tuple[str, ...]:
        """Its key."""
        return self.key

    def stored_in_home(self) -> Self:
        """Return it without a store of its own."""
        return replace(self, store=None)

    def store_url(self, views: str | None) -> str | None:
        """Return its own store, or else that of all views."""
        return self.store or views

    def table_names(self, views: str | None) -> list[TableName]:
        """Return its table and that of its changes, where they are in a database."""
        url = self.store_url(views)
        names = (self.name, self.name + limits.CHANGES)
        return [] if url is None else [TableName(database(url), name) for name in names]

    def check_table_name(self, views: str | None) -> None:
        """Refuse a name that PostgreSQL cannot have, where it is kept there."""
        if self.store_url(views) is not None:
            limits.check_view_name(self.name)

    def check_named_columns(self, columns: pa.Schema) -> None:
        """Refuse a key or an order of columns that are not there, and an order that is none."""
        super().check_named_columns(columns)
        if not self.order:
            return
        self._check_named("order", self.order, columns)
        column = columns.field(self.order)
        if pa.types.is_nested(column.type):
            what = f'{self.title} cannot be in the order of "{self.order}"'
            raise PipelineError(what, detail=f"it is {type_name(column)}", location=self.location)

    def check_storable(self, columns: pa.Schema) -> None:
        """Refuse columns that cannot be a table with its key."""
        self._keyed(columns)

    def check_stored(self, columns: pa.Schema, views: str | None) -> None:
        """Refuse columns that its database cannot hold."""
        if self.store_url(views):
            limits.check_postgres(self._keyed(columns), changes=True)
        else:
            limits.check_sqlite(self._keyed(columns))

    def _keyed(self, columns: pa.Schema) -> KeyedSchema:
        return declare(self.title, columns, self.key)


@dataclass(frozen=True, kw_only=True)
class SinkNode(Node):
    """A node whose rows are written to a target outside."""

    kind: ClassVar[str] = "sink"
    shares_query: ClassVar[bool] = False

    target: object = None

    @property
    def verifiable(self) -> bool:
        """Whether its target can be read back."""
        return isinstance(self.target, SinkTarget) and self.target.readable

    @property
    def has_versions(self) -> bool:
        """Whether its target can be built anew beside what readers see."""
        return isinstance(self.target, SinkTarget) and bool(self.target.versions or self.target.delivery)

    def versions(self, home: Path) -> TargetVersions | None:
        """Return the versions of its target, if that can be built anew, in a pipeline with a home."""
        if not isinstance(self.target, SinkTarget) or self.target.delivery is None:
            return self.target.versions if isinstance(self.target, SinkTarget) else None
        return DeliveryVersions(OutboxPlace(home, self.name), self.target.delivery)

    def outbox(self, home: Path) -> Path | None:
        """Return the file of its outbox, if its target delivers, in a pipeline with a home."""
        delivers = isinstance(self.target, SinkTarget) and self.target.delivery is not None
        return OutboxPlace(home, self.name).file if delivers else None

    @property
    def recompute_hint(self) -> str:
        """What a user does to have it computed anew."""
        return _rebuild_hint(self) if self.has_versions else super().recompute_hint

    @property
    def replacement_key(self) -> tuple[str, ...]:
        """The target's key, if it replaces rows."""
        return self.target.key if isinstance(self.target, SinkTarget) else ()

    @property
    def writable_target(self) -> SinkTarget:
        """The target, or an error if it is not one that can be written to."""
        if isinstance(self.target, SinkTarget):
            return self.target
        raise PipelineError(
            f"{self.title} has no target that can be written to",
            detail=f"got {type(self.target).__name__}",
            hint="use one of headwater.pipeline.targets, such as targets.sqlite(…)",
            location=self.location,
        )

    def open_target(self, columns: pa.Schema, version: int, home: Path) -> Sink:
        """Open the sink of a version of it, in a pipeline with a home."""
        versions = self.versions(home)
        if versions is not None:
            return versions.open(columns, version)
        return self.writable_target.open(columns)

    def table_names(self, views: str | None) -> list[TableName]:
        """Return the tables or directories of the target."""
        return self.target.table_names() if isinstance(self.target, SinkTarget) else []

    def check_stored(self, columns: pa.Schema, views: str | None) -> None:
        """Refuse columns that the target cannot take."""
        if isinstance(self.target, SinkTarget):
            self.target.check(columns)


def _rebuild_hint(node: Node) -> str:
    return f"run `headwater rebuild {Path(node.file).name} {node.name}` to compute it anew"
