"""Routes about one part of a pipeline: all that is known of it, and the rows that it has set aside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from headwater.api.figures.node_details import node_details
from headwater.api.figures.set_aside import SetAside, dead_rows, late_rows
from headwater.api.subject import Node, timed_topic
from headwater.errors import HeadwaterError
from headwater.log import Log
from headwater.pipeline.pipeline import Pipeline
from headwater.serve.http.answer import json_response
from headwater.serve.http.problem import HttpProblem
from headwater.serve.http.route import ApiRoute, Parameter
from headwater.serve.operations.operations_state import OperationsState, operations_state
from headwater.serve.operations.pipelines import NODE, PIPELINE, described, number

LIMIT = Parameter("limit", "how many at the most", schema={"type": "integer", "minimum": 1, "maximum": 1000})


async def show_node(request: Request) -> Response:
    """Answer with a source, table, stream, view or sink in full."""
    state, names = operations_state(request), request.path_params
    state.part(names["pipeline"], names["node"])
    return json_response(await to_thread.run_sync(_details, state, names["pipeline"], names["node"]))


async def show_late(request: Request) -> Response:
    """Answer with the newest rows that came too late for a node."""
    return await _set_aside(request, late_rows)


async def show_dead(request: Request) -> Response:
    """Answer with the newest records on which the code of a node fails."""
    return await _set_aside(request, dead_rows)


async def _set_aside(request: Request, read: Callable[[Log, Pipeline, Node, int], SetAside]) -> Response:
    state, names = operations_state(request), request.path_params
    pipeline, node = state.pipeline(names["pipeline"]), state.node(names["pipeline"], names["node"])
    limit = int(number(request, "limit", 50, most=1000))
    found = await to_thread.run_sync(lambda: read(state.served.log, pipeline, node, limit).to_dict())
    return json_response(found)


def _details(state: OperationsState, pipeline: str, name: str) -> dict[str, Any]:
    declared, found = state.pipeline(pipeline), state.overview(state.pipeline(pipeline))
    node = next((each for each in found.nodes if each.name == name), None)
    if node is None:
        raise HttpProblem(
            404, f"{declared[name].title} is no node", hint="GET /v1/captures tells of captures"
        )
    topic, report = timed_topic(declared[name]), None
    if topic is not None:
        with suppress(HeadwaterError):  # its topic is not there yet
            report = state.lateness(topic)
    return node_details(declared, node, report).to_dict()


def _aside(path: str, handler: Callable[[Request], Any], summary: str) -> ApiRoute:
    return ApiRoute(
        "GET",
        f"/pipelines/{{pipeline}}/nodes/{{node}}/{path}",
        handler,
        "read",
        summary,
        parameters=(PIPELINE, NODE, LIMIT),
        responses={"200": described("the newest first, and how many there are", "records", "count")},
    )


ROUTES = (
    ApiRoute(
        "GET",
        "/pipelines/{pipeline}/nodes/{node}",
        show_node,
        "read",
        "A source, table, stream, view or sink in full",
        parameters=(PIPELINE, NODE),
        responses={"200": described("the node", "name", "kind", "accounting")},
    ),
    _aside("late", show_late, "Rows that came too late for a node"),
    _aside("dead", show_dead, "Records that a node has set aside because its code fails on them"),
)
