"""Routes that do something to a pipeline or a group: each begins an operation, and tells its id.

Invariant: what cannot be done is refused before it is begun, with what to do instead.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from headwater.api.dead_letters import redrive
from headwater.api.positions import parse_start
from headwater.api.rebuild import check_rebuildable, check_resettable, rebuild_progress
from headwater.api.verify import verifiable
from headwater.errors import UsageError
from headwater.pipeline.pipeline import Pipeline
from headwater.serve.http.answer import json_response
from headwater.serve.http.problem import HttpProblem
from headwater.serve.http.route import ApiRoute, Parameter
from headwater.serve.http.small_body import json_object
from headwater.serve.operations.jobs import SparkWork
from headwater.serve.operations.operations_state import OperationsState, operations_state
from headwater.serve.operations.pipelines import NODE, PIPELINE, described
from headwater.serve.operations.topic_figures import TOPIC

_TO = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["to"],
                "properties": {"to": {"type": ["string", "integer"]}},
            }
        }
    },
}
_BEGUN = {"202": described("it is under way: ask for it by its id", "operation")}


async def begin_verify(request: Request) -> Response:
    """Begin to compute a node again, and to compare it."""
    return await _begin(request, _verify)


async def begin_rebuild(request: Request) -> Response:
    """Begin to build a view or a sink's target anew."""
    return await _begin(request, _rebuild)


async def begin_reset(request: Request) -> Response:
    """Begin to let a view start anew from a position."""
    to = await _position(request)
    return await _begin(request, lambda state, pipeline, node: _reset(state, pipeline, node, to))


async def begin_redrive(request: Request) -> Response:
    """Begin to append the records that a node has set aside again."""
    return await _begin(request, _redrive)


async def begin_seek(request: Request) -> Response:
    """Begin to move a group to a position of a topic."""
    to, names = await _position(request), request.path_params
    state = operations_state(request)
    return _accepted(await to_thread.run_sync(_seek, state, names["topic"], names["group"], to))


async def list_operations(request: Request) -> Response:
    """Answer with the operations, the newest first."""
    state = operations_state(request)
    found = await to_thread.run_sync(lambda: [each.to_dict() for each in state.jobs.store.all()])
    return json_response({"operations": found})


async def show_operation(request: Request) -> Response:
    """Answer with how an operation is doing, or what has come of it."""
    state, id = operations_state(request), request.path_params["id"]
    found = await to_thread.run_sync(lambda: state.jobs.store.get(id))
    if found is None:
        raise HttpProblem(404, f'there is no operation "{id:.100}"', hint="only the last ones are kept")
    return json_response(found.to_dict())


async def _begin(request: Request, begin: Callable[[OperationsState, Pipeline, str], str]) -> Response:
    state, names = operations_state(request), request.path_params
    pipeline, node = state.pipeline(names["pipeline"]), state.node(names["pipeline"], names["node"])
    return _accepted(await to_thread.run_sync(begin, state, pipeline, node.name))


def _accepted(operation: str) -> Response:
    return json_response({"operation": operation}, 202)


async def _position(request: Request) -> str:
    """Return the position that a body names."""
    hint = 'send {"to": "earliest"}: an end, an offset, a time of receipt or a position'
    to = (await json_object(request, hint)).get("to")
    if not isinstance(to, str | int) or isinstance(to, bool):
        raise HttpProblem(400, "the body names no position", hint=hint)
    parse_start(str(to))  # says so if it is none
    return str(to)


def _verify(state: OperationsState, pipeline: Pipeline, node: str) -> str:
    _refuse(lambda: verifiable(pipeline, [node]))
    return _spawn(state, SparkWork("verify", pipeline, node), f"verifying {pipeline[node].title}")


def _rebuild(state: OperationsState, pipeline: Pipeline, node: str) -> str:
    _refuse(lambda: check_rebuildable(pipeline, node))
    work = SparkWork(
        "rebuild",
        pipeline,
        node,
        progress=lambda: rebuild_progress(pipeline, node, state.served.log),
    )
    return _spawn(state, work, f"rebuilding {pipeline[node].title}")


def _reset(state: OperationsState, pipeline: Pipeline, node: str, to: str) -> str:
    _refuse(lambda: check_resettable(pipeline, node))
    work = SparkWork("reset", pipeline, node, to)
    return _spawn(state, work, f"resetting {pipeline[node].title} to {to}")


def _redrive(state: OperationsState, pipeline: Pipeline, node: str) -> str:
    def work() -> dict[str, int]:
        return {"records": redrive(pipeline, node)}

    return state.jobs.run("redrive", f"{pipeline.name}/{node}", work, f"redriving {pipeline[node].title}")


def _seek(state: OperationsState, topic: str, group: str, to: str) -> str:
    log = state.served.log
    log.topic(topic)  # says so if there is none
    if group not in log.groups():
        hint = "GET /v1/topics/TOPIC names its groups"
        raise HttpProblem(404, f'there is no group "{group:.100}"', hint=hint)

    def work() -> dict[str, str]:
        return {"position": log.seek(group, topic, parse_start(to)).brief}

    return state.jobs.run("seek", f"{topic}/{group}", work, f'moving group "{group}" to {to}')


def _spawn(state: OperationsState, work: SparkWork, message: str) -> str:
    if not os.path.isfile(work.pipeline.file):
        hint = "declare it in a file, and serve that"
        raise HttpProblem(409, f'pipeline "{work.pipeline.name}" has no file to be run from', hint=hint)
    return state.jobs.spawn(work, message)


def _refuse(check: Callable[[], object]) -> None:
    try:
        check()
    except UsageError as error:  # the request is well-formed; it is the node that cannot
        raise HttpProblem(409, error.message, detail=error.detail, hint=error.hint) from None


def _node_action(
    name: str,
    handler: Callable[[Request], Awaitable[Response]],
    summary: str,
    body: dict[str, Any] | None = None,
) -> ApiRoute:
    return ApiRoute(
        "POST",
        f"/pipelines/{{pipeline}}/nodes/{{node}}/{name}",
        handler,
        "operate",
        summary,
        parameters=(PIPELINE, NODE),
        body=body,
        responses=_BEGUN,
    )


ROUTES = (
    _node_action("verify", begin_verify, "Compute a node again from the log, and compare"),
    _node_action("rebuild", begin_rebuild, "Build a view or a sink's target anew, beside what readers see"),
    _node_action("reset", begin_reset, "Let a view begin anew, empty, from a position", _TO),
    _node_action("redrive", begin_redrive, "Append the records that a node has set aside again"),
    ApiRoute(
        "POST",
        "/topics/{topic}/groups/{group}/seek",
        begin_seek,
        "operate",
        "Move a group to another position of a topic",
        parameters=(TOPIC, Parameter("group", "the name of a group", "path")),
        body=_TO,
        responses=_BEGUN,
    ),
    ApiRoute(
        "GET",
        "/operations",
        list_operations,
        "operate",
        "The operations, the newest first",
        responses={"200": described("the operations", "operations")},
    ),
    ApiRoute(
        "GET",
        "/operations/{id}",
        show_operation,
        "operate",
        "How an operation is doing, or what has come of it",
        parameters=(Parameter("id", "the id of an operation", "path"),),
        responses={"200": described("the operation", "id", "kind", "target", "state")},
    ),
)
