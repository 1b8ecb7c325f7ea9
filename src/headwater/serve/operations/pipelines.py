"""Routes about pipelines: what there is, how it is doing, and how it was."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from headwater.api.figures.history import history
from headwater.api.figures.overview import runner_of
from headwater.pipeline.pipeline import Pipeline
from headwater.serve.http.answer import json_response
from headwater.serve.http.problem import HttpProblem
from headwater.serve.http.route import ApiRoute, Parameter
from headwater.serve.operations.operations_state import OperationsState, operations_state

PIPELINE = Parameter("pipeline", "the name of a pipeline", "path")
NODE = Parameter("node", "the name of a source, table, stream, view or sink", "path")
_SINCE, _POINTS = 600.0, 300


def described(about: str, *required: str) -> dict[str, Any]:
    """Return the description of a response that is a JSON object with some members."""
    schema = {"type": "object", "required": list(required)}
    return {"description": about, "content": {"application/json": {"schema": schema}}}


async def list_pipelines(request: Request) -> Response:
    """Answer with the pipelines that are served."""
    found = await to_thread.run_sync(_pipelines, operations_state(request))
    return json_response({"pipelines": found})


async def show_pipeline(request: Request) -> Response:
    """Answer with a pipeline at a glance."""
    state = operations_state(request)
    pipeline = state.pipeline(request.path_params["pipeline"])
    return json_response(await to_thread.run_sync(lambda: state.overview(pipeline).to_dict()))


async def show_history(request: Request) -> Response:
    """Answer with the figures of a node, or of a pipeline, over time."""
    state, name = operations_state(request), request.path_params["pipeline"]
    node, pipeline = request.query_params.get("node"), state.pipeline(name)
    if node is not None:
        state.part(name, node)
    since, points = number(request, "since", _SINCE), int(number(request, "points", _POINTS))
    found = await to_thread.run_sync(lambda: history(pipeline, node, since=since, points=points).to_dict())
    return json_response(found)


def number(request: Request, name: str, default: float, most: float = 1e9) -> float:
    """Return a positive number that a query parameter gives."""
    text = request.query_params.get(name)
    try:
        value = default if text is None else float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= most:  # also where it is no number
        raise HttpProblem(400, f'parameter "{name}" is a number above 0, up to {most:g}')
    return value


def _pipelines(state: OperationsState) -> list[dict[str, Any]]:
    return [_listed(each) for each in state.served.pipelines.values()]


def _listed(pipeline: Pipeline) -> dict[str, Any]:
    noted = runner_of(pipeline)
    return {
        "name": pipeline.name,
        "running": noted is not None and noted.running,
        "nodes": len(pipeline.nodes),
        "noted": None if noted is None else noted.to_dict()["noted"],
    }


ROUTES = (
    ApiRoute(
        "GET",
        "/pipelines",
        list_pipelines,
        "read",
        "The pipelines that are served",
        responses={"200": described("the pipelines", "pipelines")},
    ),
    ApiRoute(
        "GET",
        "/pipelines/{pipeline}",
        show_pipeline,
        "read",
        "A pipeline: its nodes with their figures, its captures, and what needs attention",
        parameters=(PIPELINE,),
        responses={"200": described("the pipeline", "name", "running", "nodes", "captures", "attention")},
    ),
    ApiRoute(
        "GET",
        "/pipelines/{pipeline}/history",
        show_history,
        "read",
        "The figures of a pipeline or of one of its nodes over time",
        parameters=(
            PIPELINE,
            Parameter("node", "the name of a node; without one, the pipeline as a whole"),
            Parameter("since", "how many seconds back", schema={"type": "number", "exclusiveMinimum": 0}),
            Parameter("points", "how many points at the most", schema={"type": "integer", "minimum": 1}),
        ),
        responses={"200": described("columns of equal length; null where nothing is known", "time", "rate")},
    ),
)
