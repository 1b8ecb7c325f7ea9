"""What a pipeline contains, and what can be asked of it: its parts, their order, what keeps them apart.

Invariant: names are unique, and no two parts have one topic. Whether the parts fit together is looked at
anew with each question, for declarations may come in any order.
"""

from __future__ import annotations

from typing import TypeVar

from headwater.errors import PipelineError
from headwater.pipeline import captured, table_names
from headwater.pipeline.captured import CaptureDeclaration
from headwater.pipeline.declaration import Declaration, InputTopic, Source, Table
from headwater.pipeline.graph import Graph, check_distinct
from headwater.pipeline.node import Node

D = TypeVar("D", bound=Declaration)


class PipelineContents:
    """The declarations of a pipeline, by name."""

    def __init__(self, name: str, views: str | None):
        self.name = name
        self.views = views
        self._declared: dict[str, Declaration] = {}

    def __getitem__(self, name: str) -> Declaration:
        """Return what is declared under a name."""
        return self._graph().find(name)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, as declared."""
        return tuple(part for part in self._declared.values() if isinstance(part, Source))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables, as declared."""
        return tuple(part for part in self._declared.values() if isinstance(part, Table))

    @property
    def input_topics(self) -> tuple[InputTopic, ...]:
        """Everything that something else writes: the sources, then the tables."""
        inputs = [part for part in self._declared.values() if isinstance(part, InputTopic)]
        return tuple(sorted(inputs, key=lambda part: part.compacted))

    @property
    def captures(self) -> tuple[CaptureDeclaration, ...]:
        """The captured databases, as declared."""
        return tuple(part for part in self._declared.values() if isinstance(part, CaptureDeclaration))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The streams, views and sinks, as declared."""
        return self._graph().nodes

    def problems(self) -> list[PipelineError]:
        """Return everything that keeps the parts from fitting together, without Spark and without the log.

        >>> from headwater import Pipeline
        >>> shop = Pipeline("shop")
        >>> @shop.view(key="id")
        ... def large_orders(orders):
        ...     return orders
        >>> len(shop.problems())
        1
        """
        return [
            *self._graph().problems(),
            *table_names.problems(self.nodes, self.views),
            *captured.problems((*self.sources, *self.tables), self.captures),
        ]

    def check(self) -> None:
        """Raise the first of ``problems``, if there is one.

        >>> from headwater import Pipeline
        >>> Pipeline("shop").check()
        """
        for problem in self.problems():
            raise problem

    def order(self) -> tuple[Node, ...]:
        """Return the nodes, each after those it reads; raise what ``check`` raises.

        >>> from headwater import Pipeline
        >>> Pipeline("shop").order()
        ()
        """
        return tuple(part for part in self._graph().order() if isinstance(part, Node))

    def upstream(self, name: str) -> tuple[Declaration, ...]:
        """Return all that something is made of, near and far, in order.

        - ``name``: of a source, a table or a node.

        >>> from headwater import Pipeline
        >>> shop = Pipeline("shop")
        >>> _ = shop.source("orders", "id BIGINT")
        >>> _ = shop.sql("large", "SELECT id FROM orders", key="id")
        >>> [part.name for part in shop.upstream("large")]
        ['orders']
        """
        return self._graph().upstream(name)

    def downstream(self, name: str) -> tuple[Node, ...]:
        """Return all nodes that are made of something, near and far, in order.

        - ``name``: of a source, a table or a node.

        >>> from headwater import Pipeline
        >>> shop = Pipeline("shop")
        >>> _ = shop.source("orders", "id BIGINT")
        >>> _ = shop.sql("large", "SELECT id FROM orders", key="id")
        >>> [part.name for part in shop.downstream("orders")]
        ['large']
        """
        return self._graph().downstream(name)

    def inputs(self, node: Node | str) -> tuple[str, ...]:
        """Return the topics that a node reads.

        - ``node``: the node, or its name.

        >>> from headwater import Pipeline
        >>> shop = Pipeline("shop")
        >>> _ = shop.source("orders", "id BIGINT", topic="all-orders")
        >>> _ = shop.sql("large", "SELECT id FROM orders", key="id")
        >>> shop.inputs("large")
        ('all-orders',)
        """
        return self._graph().inputs(node.name if isinstance(node, Node) else node)

    def _graph(self) -> Graph:
        return Graph(self.name, self._declared)

    def _add(self, declaration: D) -> D:
        for earlier in self._declared.values():
            check_distinct(declaration, earlier)
        self._declared[declaration.name] = declaration
        return declaration
