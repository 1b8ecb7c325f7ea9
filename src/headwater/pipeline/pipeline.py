"""A pipeline: the sources, tables, streams, views and sinks that a user declares, and nothing that runs.

Node functions are kept, never called: that is the engine's part. Invariant: what is declared is right
in itself, names are unique, and everything knows the user's file and line; ``check`` says whether the
parts fit together.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa

from headwater import topic as topics
from headwater.errors import PipelineError
from headwater.log.interface import no_formats
from headwater.log.open import absolute_url
from headwater.pipeline import captured as captures
from headwater.pipeline import declaring, handling
from headwater.pipeline.captured import CaptureDeclaration, OnMisfit, OutboxSettings
from headwater.pipeline.contents import PipelineContents
from headwater.pipeline.declaration import Declaration, InputTopic, Source, Table
from headwater.pipeline.handling import Answer, CommandDecider
from headwater.pipeline.node import Node, OnError
from headwater.pipeline.settings import (
    FormatSettings,
    InputSettings,
    Key,
    NodeSettings,
    Origin,
    QuerySettings,
    SinkSettings,
    StreamSettings,
    TimingSettings,
    TopicSettings,
    ViewSettings,
)
from headwater.pipeline.source_line import SourceLine, caller, errors_at, origin
from headwater.store_address import StoreAddress, is_store, working_folder
from headwater.views.opening import check_store

__all__ = ["Declaration", "Node", "Pipeline", "Source", "Table"]

F = TypeVar("F", bound=Callable[..., Any])
I = TypeVar("I", bound=InputTopic)  # noqa: E741


class Pipeline(PipelineContents):
    """Declares what is derived from what.

    Names are those of function parameters, and unique whatever their capitals. Declarations may come
    in any order. One that is wrong in itself raises a ``PipelineError`` at once; what needs the whole,
    as a misspelt upstream or a cycle, is found by ``check``.

    - ``name``: letters, digits, ``.``, ``_`` and ``-``.
    - ``log="file:./data"``: the URL of the log, or ``"kafka://host:9092"``; a relative directory is looked
      for where the program is when it declares the pipeline.
    - ``home=None``: the directory of checkpoints and views: ``pipelines/NAME`` within a log that is a
      directory, else ``./headwater-NAME``. Or ``"s3://bucket/shop"``: then it outlives the machine.
    - ``views=None``: where views are kept that name no ``store`` of their own: the URL of a PostgreSQL
      database; without it an SQLite file in ``home``.

    State: a declaration runs nothing and keeps nothing; ``headwater run FILE`` does.
    Restart: a run goes on where the last one of the same ``home`` has stopped. A node whose definition has
    changed is refused until its view is rebuilt or it has another name.

    >>> shop = Pipeline("shop")
    >>> _ = shop.source("orders", "id BIGINT, amount DOUBLE, at TIMESTAMP", event_time="at")
    >>> @shop.view(key="id")
    ... def large_orders(orders):
    ...     '''Orders over a thousand.'''
    ...     return orders.filter("amount > 1000")
    >>> [node.name for node in shop.order()]
    ['large_orders']
    """

    def __init__(
        self,
        name: str,
        log: str = "file:./data",
        *,
        home: str | os.PathLike[str] | None = None,
        views: str | None = None,
    ):
        line = caller()
        with errors_at(line):
            topics.check_name("pipeline", name)
            default_home = _home(name, log)
            self.log = absolute_url(log)
            if views is not None:
                check_store(views)
            address = StoreAddress.parse(str(home)) if is_store(home) else None
        super().__init__(name, views)
        self.home_store = None if address is None else str(address)
        """The address of its home, if that is in an object store: ``home`` is this machine's copy of it."""
        path = working_folder(address) if address is not None else default_home if home is None else home
        self.home = Path(path).absolute()
        self.file, self.line = line
        self._answers: dict[str, dict[str, Answer]] = {}
        """What handlers answer questions with, by the names of their deciders."""

    def __repr__(self) -> str:
        return f"<pipeline {self.name}: {len(self.nodes)} nodes>"

    def source(
        self,
        name: str,
        schema: str | pa.Schema,
        *,
        event_time: str | None = None,
        lateness: str | None = None,
        idle: str | None = None,
        max_ahead: str | None = None,
        topic: str | None = None,
        key: Key = None,
        metadata: str | Sequence[str] = (),
        producer: str | None = None,
        format: str = "json",
        key_format: str | None = None,
        captured: str | None = None,
        event: str | None = None,
        headers: str | Sequence[str] = (),
        delete: bool = False,
    ) -> Source:
        """Declare a topic of events.

        - ``name``: what functions call it, by a parameter of that name.
        - ``schema``: the columns as Spark DDL, or an Arrow schema.
        - ``event_time=None``: the TIMESTAMP column that says when an event happened, or an expression of
          Spark SQL over the record, as in ``"timestamp_millis(at)"`` or ``"_timestamp"``. Its column is
          called ``event_time``, or as ``AS`` says.
        - ``lateness=None``: how long an event is waited for after its time, ``"10 minutes"``; not at all if
          None.
        - ``idle=None``: how long a silent producer is waited for beside others of the source (10 seconds if
          None), and, if it is given, how long the source is beside others that a node reads (else always).
        - ``max_ahead=None``: how far ahead of its receipt an event may be and still move the watermark (10
          minutes if None).
        - ``topic=None``: the topic's name where it is not the source's.
        - ``key=None``: the topic's key column(s), or expressions.
        - ``metadata=()``: what else of a record becomes a column: ``"_offset, _timestamp AS stored"`` are
          called ``offset`` and ``stored``; also ``_partition``, ``_key``, ``_headers``, ``_producer``.
        - ``producer=None``: the column that names who has made an event, where many devices send through one
          gateway: each has a clock of its own then. The producer of the record if None.
        - ``format="json"``: how another program writes the topic's values on a broker: ``"json"``,
          ``"avro"``, ``"protobuf"`` and ``"json_schema"`` with a schema registry, ``"avro:FILE.avsc"``
          without one, ``"csv"``, ``"text"``, ``"bytes"``.
        - ``key_format=None``: how it writes their keys, the same formats: the key's columns are then read
          from the record's key, and not from its value.
        - ``captured=None``: the outbox of a database that fills it: ``"crm.outbox"`` is the table ``outbox``
          of ``capture("crm", …)``; each row that is inserted there is an event. Without ``event_time`` it has
          the column ``committed_at`` then, which is its event time.
        - ``event=None``: the column of the outbox that holds an event as a JSON object; the columns of the
          source are those of the outbox if None.
        - ``headers=()``: columns of the outbox that become headers of the record.
        - ``delete=False``: whether rows are deleted from the outbox when the log has them durably.

        The watermark is the newest event time of each producer less ``lateness``, of the slowest one. A row
        from before it is late where an operator says so.

        >>> Pipeline("shop").source("clicks", "url STRING, at TIMESTAMP", event_time="at").topic
        'clicks'
        """
        line, columns = caller(), schema
        outbox = OutboxSettings(captured, event, headers, delete)
        with errors_at(line):
            origin = outbox.read(Source.title_of(name))
            if origin is not None:
                columns, event_time = captures.with_commit_time(schema, event_time)
                captures.check_own_format(Source.title_of(name), format, key_format)
        formats = FormatSettings(format, key_format)
        read = TopicSettings(key, event_time, topic, metadata, producer, formats)
        settings = InputSettings(read, TimingSettings(lateness, idle, max_ahead))
        declared = self._input(Source, name, columns, line, settings)
        return self._add(replace(declared, captured=origin))

    def table(
        self,
        name: str,
        schema: str | pa.Schema,
        *,
        key: Key = None,
        event_time: str | None = None,
        lateness: str | None = None,
        idle: str | None = None,
        topic: str | None = None,
        format: str = "json",
        key_format: str | None = None,
        captured: str | None = None,
        history: bool = False,
    ) -> Table:
        """Declare a compacted topic: rows that are changed and deleted by their key.

        - ``name``: what functions call it, by a parameter of that name.
        - ``schema``: the columns as Spark DDL, or an Arrow schema.
        - ``key=None``: the column(s) that tell rows apart: ``"id"``, ``"shop,day"``; it has to be given.
        - ``event_time=None``: the TIMESTAMP column that says from when on a row is valid, for
          ``joins.as_of``.
        - ``lateness=None``: as for ``source``: how long a change is waited for after its time.
        - ``idle=None``: how long those who read the table as of a time wait for it though it does not change;
          for ever if None.
        - ``topic=None``: the topic's name where it is not the table's.
        - ``format="json"``: as for ``source``.
        - ``key_format=None``: as for ``source``; without one the key of a deletion is read as text, or as a
          JSON array of several columns.
        - ``captured=None``: the table of a database that fills it: ``"crm.customers"`` is the table
          ``customers`` of ``capture("crm", …)``. It has the column ``committed_at`` then, which is its event
          time where no other is named.
        - ``history=False``: whether the topic ``TOPIC.changes`` keeps every change that is captured, with the
          row before and after it.

        A view of a table shows its rows as they are now; a stream of it has its changes, with ``_deleted``.

        >>> Pipeline("shop").table("customers", "id BIGINT, name STRING", key="id").key
        ('id',)
        """
        line, columns = caller(), schema
        if captured is not None:
            with errors_at(line):
                columns, event_time = captures.with_commit_time(schema, event_time)
        settings = InputSettings(
            TopicSettings(key, event_time, topic, formats=FormatSettings(format, key_format)),
            TimingSettings(lateness, idle),
        )
        declared = self._input(Table, name, columns, line, settings)
        with errors_at(line):
            origin = captures.captured_from(declared.title, captured, history)
        return self._add(replace(declared, captured=origin))

    def capture(
        self,
        name: str,
        url: str,
        *,
        on_error: OnMisfit = "stop",
        max_retained: int | None = None,
        alert_retained: int | None = None,
        transactions: bool = False,
    ) -> CaptureDeclaration:
        """Declare a database whose changes fill tables, for as long as the pipeline runs.

        - ``name``: what ``captured=`` calls it: ``table(..., captured="NAME.TABLE")``.
        - ``url``: the database: ``"postgresql://shop@db/shop"``, ``"mysql://shop@db/shop"`` or
          ``"sqlite:./crm.db"``, a file that is found from where the program is now. It is not shown in
          messages; a password may come from the environment.
          A slot and a publication of PostgreSQL that are there may be given: ``…/shop?slot=a&publication=b``.
        - ``on_error="stop"``: what becomes of a row that the declared columns cannot hold: ``"stop"`` stops
          the capture there and names it; ``"dead_letter"`` sets it aside in the topic
          ``PIPELINE.NAME.dead``.
        - ``max_retained=None``: how many bytes the database may keep for a capture that is behind, before it
          is given up rather than fill the database's disk; any number if None.
        - ``alert_retained=None``: above how many bytes there is a warning, in the log, in the status and in
          the metrics; half of ``max_retained`` if None.
        - ``transactions=False``: whether the topic ``PIPELINE.NAME.transactions`` has a record for each
          transaction when all of its changes are stored: ``headwater.read_transactions`` reads whole ones.

        Out: of each captured table every row that it has, and then each change in the order of the commits,
        in a compacted topic.
        Restart: goes on behind the last change that the log has; a kill neither loses nor repeats one.

        >>> shop = Pipeline("shop")
        >>> _ = shop.capture("crm", "sqlite:./crm.db")
        >>> _ = shop.table("customers", "id BIGINT, name STRING", key="id", captured="crm.customers")
        >>> shop["customers"].event_time
        'committed_at'
        """
        line = caller()
        with errors_at(line):
            declaring.check_name(CaptureDeclaration, name)
            captures.check_capture(CaptureDeclaration.title_of(name), url, on_error)
            captures.check_retained(CaptureDeclaration.title_of(name), max_retained, alert_retained)
        return self._add(
            CaptureDeclaration(
                name=name,
                file=line.file,
                line=line.line,
                url=captures.absolute_url(url),
                on_error=on_error,
                max_retained=max_retained,
                alert_retained=alert_retained,
                transactions=transactions,
            )
        )

    def stream(
        self,
        *,
        key: Key = None,
        event_time: str | None = None,
        partitions: int | None = None,
        on_error: OnError = "stop",
    ) -> Callable[[F], F]:
        """Declare a function whose rows go to a topic of the log, ``PIPELINE.FUNCTION``.

        - ``key=None``: the topic's key column(s); rows of one key are in one partition, in order.
        - ``event_time=None``: the TIMESTAMP column of the rows that is the topic's event time.
        - ``partitions=None``: how many the topic has, 1 to 1024; None leaves it to the engine.
        - ``on_error="stop"``: what becomes of a row on which the function fails: ``"stop"`` stops the node
          and names the row; ``"dead_letter"`` sets the row aside in the topic ``PIPELINE.NODE.dead`` and
          goes on.

        The function gets a DataFrame for each parameter, named after what it reads, and returns one. It is
        returned unchanged.
        Restart: a batch that comes again is appended once.

        >>> shop = Pipeline("shop")
        >>> @shop.stream(key="session")
        ... def visits(clicks):
        ...     return clicks.select("session", "at")
        >>> shop["visits"].topic
        'shop.visits'
        """
        return self._decorator(StreamSettings(key, event_time, partitions, on_error))

    def view(
        self,
        *,
        key: Key = None,
        order: str | None = None,
        on_error: OnError = "stop",
        store: str | None = None,
    ) -> Callable[[F], F]:
        """Declare a function whose rows are a keyed table that is kept up to date.

        - ``key=None``: the column(s) that tell rows apart; it has to be given.
        - ``order=None``: a column: a scan in its order, of the rows that differ in the last column of the
          key, is one look at an index, however many there are.
        - ``on_error="stop"``: as for ``stream``.
        - ``store=None``: where the view is kept, if not where the pipeline's other views are: the URL of a
          PostgreSQL database.

        A later row of a key replaces the earlier one; a row with ``_deleted`` true deletes it.
        Restart: rows, batch number and positions are committed together, so a batch that comes again changes
        nothing.

        >>> shop = Pipeline("shop")
        >>> @shop.view(key="shop, day")
        ... def reports(daily_reports):
        ...     return daily_reports.filter("total > 0")
        >>> shop["reports"].key
        ('shop', 'day')
        """
        return self._decorator(ViewSettings(key, order, on_error, store))

    def sink(self, target: object, *, on_error: OnError = "stop") -> Callable[[F], F]:
        """Declare a function whose rows are written to a target outside.

        - ``target``: one of ``headwater.pipeline.targets``: ``targets.parquet("./archive")``.
        - ``on_error="stop"``: as for ``stream``.

        Restart: a batch that comes again changes nothing, but for ``targets.foreach``, which is called again.

        >>> shop = Pipeline("shop")
        >>> @shop.sink("any target")
        ... def to_warehouse(orders):
        ...     return orders
        >>> shop["to_warehouse"].upstreams
        ('orders',)
        """
        if target is None or inspect.isfunction(target):  # the latter: @shop.sink without its parentheses
            raise PipelineError(
                "a sink has no target",
                location=str(caller()),
                hint="name where its rows go, as in @shop.sink(target)",
            )
        return self._decorator(SinkSettings(target, on_error))

    def sql(
        self,
        name: str,
        statement: str,
        *,
        kind: Literal["view", "stream"] = "view",
        key: Key = None,
        event_time: str | None = None,
        partitions: int | None = None,
        on_error: OnError = "stop",
        store: str | None = None,
    ) -> Node:
        """Declare a query as a view or a stream; it reads what it selects from, by name.

        - ``name``: the node's name.
        - ``statement``: one SELECT of Spark's. A join of upstreams, GROUP BY or DISTINCT is refused: use
          operators.
        - ``kind="view"``: or ``"stream"``.
        - ``key=None``: as for that decorator, and so all that follow.
        - ``event_time=None``: of a stream.
        - ``partitions=None``: of a stream.
        - ``on_error="stop"``: as for ``stream``.
        - ``store=None``: of a view.

        >>> shop = Pipeline("shop")
        >>> _ = shop.source("orders", "id BIGINT, amount DOUBLE")
        >>> _ = shop.sql("large_orders", "SELECT * FROM orders WHERE amount > 1000", key="id")
        >>> shop["large_orders"].upstreams
        ('orders',)
        """
        settings = QuerySettings(key, event_time, partitions, on_error, store)
        return self._add(declaring.query(kind, statement, Origin(name, caller(), self.name), settings))

    def handler(
        self, decider: CommandDecider, *, commands: str = "commands", on_error: OnError = "stop"
    ) -> Node:
        """Let commands that come by a topic be decided by a ``headwater.sourcing.Decider``, in order by key.

        - ``decider``: whose commands they are.
        - ``commands="commands"``: the name of their source, which is declared with this; its topic has the
          same name.
        - ``on_error="stop"``: what becomes of a command on which the decider's code fails, as for
          ``stream``; one that it rejects is answered, and no failure.

        Out: the stream ``DECIDER_replies`` has a row for each command: accepted, or the reason why not, and
        its events; the stream ``DECIDER`` has the events, as ``Decider.open`` would have stored them.
        ``Decider.connect(pipeline)`` sends commands and waits for replies.
        Order: that of the commands of a key in their topic, which keeps its number of partitions: where one
        is added, the handler stops before it decides anything more. A command that is sent again under its
        request id gets the first reply, and adds nothing.
        State: of each key, and each reply; it never goes.
        Restart: both are as they were; each command is decided once. Edited code decides what comes from then
        on, on states that are folded anew.

        >>> from headwater.sourcing import Decider
        >>> shop = Pipeline("shop")
        >>> counter = Decider("counter", initial=0, decide=max, evolve=min, commands=[], events=[])
        >>> shop.handler(counter).topic
        'shop.counter'
        """
        line, replies = caller(), handling.replies_name(decider.name)
        answers = self._answers.setdefault(decider.name, {})
        self._add(handling.source_of_commands(decider, commands, line))
        origin = Origin(replies, line, self.name)
        self._add(handling.stream_of_replies(decider, commands, answers, origin, on_error))
        origin = Origin(decider.name, line, self.name)
        return self._add(handling.stream_of_events(decider, replies, origin, on_error))

    def query(self, name: str, decider: CommandDecider, answer: Answer) -> None:
        """Let questions about the aggregates of a handler be answered by the node that has their states.

        - ``name``: of the question.
        - ``decider``: whose ``handler`` was declared before.
        - ``answer``: ``answer(state, arguments)`` returns what JSON can hold.

        A question is a record among the commands of its key: the answer is that of the state at that place,
        behind all commands before it and before all after it. Both are in the log: who asked what when, and
        what the answer was. ``Decider.connect(pipeline).ask(name, key)`` asks.

        >>> from headwater.sourcing import Decider
        >>> shop = Pipeline("shop")
        >>> counter = Decider("counter", initial=0, decide=max, evolve=min, commands=[], events=[])
        >>> _ = shop.handler(counter)
        >>> shop.query("count", counter, lambda state, arguments: state)
        """
        line, handled = caller(), getattr(decider, "name", decider)
        if handled not in self._answers:
            raise handling.no_handler(handled, list(self._answers), line)
        self._answers[handled][name] = answer

    def _input(
        self, kind: type[I], name: str, schema: str | pa.Schema, line: SourceLine, settings: InputSettings
    ) -> I:
        """Return a source or a table; one on a log that keeps typed rows has no formats."""
        formats = settings.topic.formats
        if formats != FormatSettings() and not self.log.startswith("kafka:"):
            with errors_at(line):
                raise no_formats(kind.title_of(name), formats.format, formats.key_format)
        return declaring.input_topic(kind, name, schema, line, settings)

    def _decorator(self, settings: NodeSettings) -> Callable[[F], F]:
        def declare(function: F) -> F:
            with errors_at(caller()):
                below = declaring.function_of(function)
            self._add(declaring.node(function, origin(below), self.name, settings))
            return function

        return declare


def _home(name: str, log: str) -> Path:
    """Return where a pipeline keeps its own files, next to a log that is a directory."""
    scheme, _, rest = log.partition(":") if isinstance(log, str) else ("", "", "")
    if scheme == "file" and rest:
        return Path(rest.removeprefix("//")) / "pipelines" / name
    if scheme == "kafka" or log == "memory:":
        return Path(f"headwater-{name}")
    raise PipelineError(
        f'invalid log URL "{log}"',
        hint='use "file:./data" for a directory, "memory:", or "kafka://host:9092"',
    )
