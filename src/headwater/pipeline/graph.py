"""How the declarations of a pipeline hang together: who reads whom, and in which order they can run.

Invariant: an order is only ever returned for a pipeline without problems, and in it everything comes
after what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from headwater.errors import PipelineError, nearest
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.declaring import no_upstream
from headwater.pipeline.node import Node


class Graph:
    """The declarations of a pipeline as they are now."""

    def __init__(self, pipeline: str, declared: Mapping[str, Declaration]):
        self._pipeline = pipeline
        spelled = {name.casefold(): name for name in declared}
        self.declared = {name: each.resolved(spelled) for name, each in declared.items()}

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, in the order in which they were declared."""
        return tuple(each for each in self.declared.values() if isinstance(each, Node))

    def find(self, name: str) -> Declaration:
        """Return what has a name, or refuse the name."""
        if name not in self.declared:
            hint = nearest(name, self.declared) or _names(self.declared)
            raise PipelineError(f'pipeline "{self._pipeline}" has no node "{name}"', hint=hint)
        return self.declared[name]

    def problems(self) -> list[PipelineError]:
        """Return what is wrong with the whole: upstreams that are not there or cannot be read, cycles."""
        return [wrong for node in self.nodes for wrong in self._wrong_upstreams(node)] + list(self._cycles())

    def check(self) -> None:
        """Raise the first problem."""
        for problem in self.problems():
            raise problem

    def order(self) -> tuple[Declaration, ...]:
        """Return everything declared, each after what it reads."""
        self.check()
        return tuple(self.declared[name] for name in TopologicalSorter(self._edges()).static_order())

    def upstream(self, name: str) -> tuple[Declaration, ...]:
        """Return all that something is made of, near and far, in order."""
        self.find(name)
        reached = {name}
        for each in reversed(order := self.order()):
            if each.name in reached:
                reached.update(each.upstreams)
        return tuple(each for each in order if each.name in reached - {name})

    def downstream(self, name: str) -> tuple[Node, ...]:
        """Return all nodes that are made of something, near and far, in order."""
        self.find(name)
        reached = {name}
        for each in (order := self.order()):
            if reached.intersection(each.upstreams):
                reached.add(each.name)
        return tuple(each for each in order if isinstance(each, Node) and each.name in reached - {name})

    def inputs(self, name: str) -> tuple[str, ...]:
        """Return the topics that a node reads."""
        self.check()
        read = (self.declared[upstream] for upstream in self.find(name).upstreams)
        return tuple(dict.fromkeys(topic for each in read if (topic := each.readable_topic) is not None))

    def _edges(self) -> dict[str, list[str]]:
        """Return for each name those that it reads and that are there."""
        return {
            name: [upstream for upstream in each.upstreams if upstream in self.declared]
            for name, each in self.declared.items()
        }

    def _wrong_upstreams(self, node: Node) -> Iterator[PipelineError]:
        if not node.upstreams:
            yield no_upstream(node)
        for name in node.upstreams:
            if name not in self.declared:
                hint = nearest(name, self.declared) or _names(self.declared)
                yield PipelineError(
                    f'{node.title} has no upstream "{name}"', location=node.location, hint=hint
                )
            elif self.declared[name].readable_topic is None:
                yield _unreadable(node, self.declared[name])

    def _cycles(self) -> Iterator[PipelineError]:
        """Find cycles that have no node in common; what they share shows when one is mended."""
        edges = self._edges()
        while True:
            try:
                TopologicalSorter(edges).prepare()
                return
            except CycleError as error:
                path = list(error.args[1])
            yield self._cycle(path)
            edges = {
                name: [each for each in read if each not in path]
                for name, read in edges.items()
                if name not in path
            }

    def _cycle(self, path: list[str]) -> PipelineError:
        """Return the error for a path whose first name is its last; each is read by the next."""
        first = min(path, key=list(self.declared).index)
        turned = [*path[path.index(first) : -1], *path[: path.index(first)], first]
        readers = [(self.declared[reader], read) for read, reader in pairwise(turned)]
        said = [f'"{reader.name}" reads "{read}"' for reader, read in readers]
        also = [f"{reader.location}: {each}" for (reader, _), each in zip(readers[1:], said[1:], strict=True)]
        return PipelineError(
            f'pipeline "{self._pipeline}" has a cycle: {" → ".join(turned)}',
            location=readers[0][0].location,
            detail="; ".join([said[0], *also]),
            hint="let one of them read what the others are made of",
        )


def check_distinct(declaration: Declaration, earlier: Declaration) -> None:
    """Refuse a second declaration of a name, and a stream that would write to a topic which is read."""
    if declaration.name.casefold() == earlier.name.casefold():
        raise PipelineError(
            f"{declaration.title} has the name of {earlier.title}",
            location=declaration.location,
            detail=f'"{earlier.name}" is declared at {earlier.location}',
            hint="give one of them another name",
        )
    written = {declaration.written_topic, earlier.written_topic} - {None}
    if declaration.readable_topic == earlier.readable_topic and declaration.readable_topic in written:
        raise PipelineError(
            f"{declaration.title} has the topic of {earlier.title}",
            location=declaration.location,
            detail=f'topic "{declaration.readable_topic}" is used at {earlier.location}',
            hint="a stream's topic is named PIPELINE.NODE; rename the node, or read another topic",
        )


def _unreadable(node: Node, upstream: Declaration) -> PipelineError:
    return PipelineError(
        f"{node.title} cannot read {upstream.title}",
        location=node.location,
        detail=f"a {upstream.kind} has no topic of its own",
        hint=upstream.unreadable_hint,
    )


def _names(declared: Mapping[str, Declaration]) -> str | None:
    return "declared are: " + ", ".join(declared) if declared else None
