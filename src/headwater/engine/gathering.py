"""Brings the queries of a pipeline to the same place, so that they can become one.

A view that is added to a pipeline has everything still to read, so it begins in a query of its own. Once it
has come nearly as far as the others, those that are behind read on to where the furthest is, and all go on as
one: ten views that were added one by one cost as much as ten that began together.

Invariant: a query that cannot be brought there goes on by itself, and loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.engine.assembly import Assembly
from headwater.engine.batch import query_layout
from headwater.engine.batch.query import Query
from headwater.engine.home import node_progress, query_merge
from headwater.errors import HeadwaterError
from headwater.log import Position

NEAR_ROWS = 100_000
"""How far behind another a query may be to be brought to the same place."""
ROUNDS = 3
"""How often that is tried: a query reads the first append whole of a producer that it does not know."""


class Gathering(Assembly):
    """A pipeline whose queries become one when they can."""

    def gather(self) -> None:
        """Let nodes share a query that have come nearly as far as others; queries may be running."""
        for fate, queries in self._groups().items():
            try:
                self.ownership.check()
                there = self._brought_together(_near(queries))
                if len(there) > 1:
                    self._merge(fate, sorted(there, key=lambda query: -len(query.node_runs)))
            except (
                HeadwaterError,
                OSError,
            ):  # each goes on by itself, and tells what is wrong
                for query in queries:
                    query.apart = True

    def _brought_together(self, queries: Sequence[Query]) -> list[Query]:
        """Let queries come to the same place, and stop there; return those that have."""
        if len(queries) < 2:
            return []
        for query in queries:
            query.stop()
        there, places = list[Query](), _planned(queries)
        for _ in range(ROUNDS):
            there = [query for query in queries if self._goes_to(query, places)]
            before, places = places, _planned(queries)
            if places == before:
                break
        for query in queries:
            query.apart = query not in there or len(there) < 2  # it is not tried again in this run
        return there

    def _groups(self) -> dict[str, list[Query]]:
        """Return the queries that could be one, by what the results of their nodes depend on."""
        groups: dict[str, list[Query]] = {}
        for query in self.queries.values() if self._share else ():
            names = list(query.node_runs)
            movable = all(query_layout.may_move(self.nodes[name].version) for name in names)
            if names and movable and query.error is None and not query.apart:
                fate = query_layout.fate(self.pipeline, query.node_runs[names[0]].shape)
                groups.setdefault(fate, []).append(query)
        return groups

    def _goes_to(self, query: Query, places: Mapping[str, Position]) -> bool:
        """Let a query read up to places in its inputs, and stop there; tell whether it has come to them."""
        try:
            self.ownership.check()
            self._begin(query, {name: self.nodes[name].version for name in query.node_runs})
            query.start(places).processAllAvailable()
        except Exception:  # whatever it is, it is told when the query starts as always
            return False
        finally:
            query.stop()
        found = query_merge.standing(query.checkpoint, query.upstreams)
        return found is not None and query_merge.is_at(found, places)

    def _merge(self, fate: str, queries: Sequence[Query]) -> None:
        """Make one query of several that are at the same place."""
        self.ownership.check()
        into = query_layout.next_query(self.pipeline, fate)
        known = [query_merge.standing(query.checkpoint, query.upstreams) for query in queries]
        found = [each for each in known if each is not None]
        homes = [node_run.home for query in queries for node_run in query.node_runs.values()]
        query_merge.merge(found, {home: node_progress.read(home) for home in homes}, into)
        merged = self.queries[into] = self._query(into)
        for query in queries:
            del self.queries[query.checkpoint]
            merged.node_runs |= query.node_runs
            merged.left += query.left  # while it read on
        merged.node_runs = {name: merged.node_runs[name] for name in self._ordered(merged)}
        for name in merged.node_runs:
            query_layout.move(self.nodes[name].version, into)
            self.nodes[name].query = merged


def _planned(queries: Sequence[Query]) -> dict[str, Position]:
    """Return the furthest place in each input that any of some queries has planned to come to."""
    return query_merge.furthest([query_merge.planned(query.checkpoint, query.upstreams) for query in queries])


def _near(queries: Sequence[Query]) -> list[Query]:
    """Return the queries that are not far behind the furthest."""
    places_of = ((query, query_merge.last(query.checkpoint, query.upstreams)) for query in queries)
    known = {query: found for query, found in places_of if found is not None}
    places = query_merge.furthest(list(known.values()))
    return [query for query, at in known.items() if query_merge.behind(at, places) <= NEAR_ROWS]
