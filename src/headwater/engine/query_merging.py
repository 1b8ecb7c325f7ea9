"""Decides which queries of a running pipeline become one, and brings them to the same offsets for it.

A view that is added to a pipeline has everything still to read, so it begins in a query of its own. Once it
has come nearly as far as the others, those that are behind read on to where the furthest is, and all go on as
one: ten views that were added one by one cost as much as ten that began together. The files of it are
written by ``headwater.engine.home.checkpoint_merge``.

Invariant: a query that cannot be brought there goes on by itself, and loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.engine.assembly import Assembly
from headwater.engine.batch import query_layout
from headwater.engine.batch.query import Query
from headwater.engine.home import checkpoint_merge, node_progress
from headwater.errors import HeadwaterError
from headwater.log import Position

NEAR_ROWS = 100_000
"""How far behind another a query may be to be merged with it."""
ROUNDS = 3
"""How often that is tried: a query reads the first append whole of a producer that it does not know."""


class QueryMerging(Assembly):
    """A pipeline whose queries become one when they can."""

    def merge_queries(self) -> None:
        """Let nodes share a query that have come nearly as far as others; queries may be running."""
        for group, queries in self._groups().items():
            try:
                self.lease.check()
                aligned = self._align(_near(queries))
                if len(aligned) > 1:
                    self._merge(group, sorted(aligned, key=lambda query: -len(query.node_runs)))
            except (HeadwaterError, OSError):  # each goes on by itself, and reports what is wrong
                for query in queries:
                    query.unmergeable = True

    def _align(self, queries: Sequence[Query]) -> list[Query]:
        """Let queries come to the same offsets, and stop there; return those that have."""
        if len(queries) < 2:
            return []
        for query in queries:
            query.stop()
        aligned, target = list[Query](), _furthest_planned(queries)
        for _ in range(ROUNDS):
            aligned = [query for query in queries if self._reads_up_to(query, target)]
            before, target = target, _furthest_planned(queries)
            if target == before:
                break
        for query in queries:
            query.unmergeable = query not in aligned or len(aligned) < 2  # not tried again in this run
        return aligned

    def _groups(self) -> dict[str, list[Query]]:
        """Return the queries that could be one, by the sharing group of their nodes."""
        groups: dict[str, list[Query]] = {}
        for query in self.queries.values() if self._share else ():
            names = list(query.node_runs)
            movable = all(query_layout.may_move(self.nodes[name].version) for name in names)
            if names and movable and query.error is None and not query.unmergeable:
                group = query_layout.sharing_group(self.pipeline, query.node_runs[names[0]].plan)
                groups.setdefault(group, []).append(query)
        return groups

    def _reads_up_to(self, query: Query, target: Mapping[str, Position]) -> bool:
        """Let a query read up to positions in its inputs, and stop there; tell whether it has got there."""
        try:
            self.lease.check()
            self._begin(query, self._versions_of(query))
            query.start(target).processAllAvailable()
        except Exception:  # whatever it is, it is raised again when the query starts as always
            return False
        finally:
            query.stop()
        stopped = checkpoint_merge.stopped_at(query.checkpoint, query.upstreams)
        return stopped is not None and checkpoint_merge.is_at(stopped, target)

    def _merge(self, group: str, queries: Sequence[Query]) -> None:
        """Make one query of several that are at the same offsets."""
        self.lease.check()
        into = query_layout.next_checkpoint(self.pipeline, group)
        stops = [checkpoint_merge.stopped_at(query.checkpoint, query.upstreams) for query in queries]
        offsets = [stop for stop in stops if stop is not None]
        homes = [node_run.home for query in queries for node_run in query.node_runs.values()]
        checkpoint_merge.merge(offsets, {home: node_progress.read(home) for home in homes}, into)
        merged = self.queries[into] = self._query(into)
        for query in queries:
            del self.queries[query.checkpoint]
            merged.node_runs |= query.node_runs
            merged.detached += query.detached  # while it read on
        merged.node_runs = self._ordered(merged.node_runs)
        for name in merged.node_runs:
            query_layout.move(self.nodes[name].version, into)
            self.nodes[name].query = merged
        self.publisher.publish(into, *(self.nodes[name].version.home for name in merged.node_runs))


def _furthest_planned(queries: Sequence[Query]) -> dict[str, Position]:
    """Return the furthest position in each input that any of the queries has planned to come to."""
    planned = (checkpoint_merge.last_planned(query.checkpoint, query.upstreams) for query in queries)
    return checkpoint_merge.furthest(list(planned))


def _near(queries: Sequence[Query]) -> list[Query]:
    """Return the queries that are not far behind the furthest."""
    last = ((query, checkpoint_merge.last_done(query.checkpoint, query.upstreams)) for query in queries)
    done = {query: offsets for query, offsets in last if offsets is not None}
    furthest = checkpoint_merge.furthest(list(done.values()))
    return [query for query, offsets in done.items() if checkpoint_merge.lag(offsets, furthest) <= NEAR_ROWS]
