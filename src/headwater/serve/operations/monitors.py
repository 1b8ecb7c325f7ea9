"""Routes for monitors: captures, and the figures of all pipelines for Prometheus."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from headwater.api.captures import capture_statuses
from headwater.api.figures.pipeline_metrics import CONTENT_TYPE, pipeline_metrics
from headwater.serve.http.answer import json_response
from headwater.serve.http.route import ApiRoute
from headwater.serve.operations.operations_state import OperationsState, operations_state
from headwater.serve.operations.pipelines import described


async def list_captures(request: Request) -> Response:
    """Answer with the captures of all pipelines."""
    return json_response({"captures": await to_thread.run_sync(_captures, operations_state(request))})


async def show_metrics(request: Request) -> Response:
    """Answer with the figures of all pipelines, as Prometheus takes them."""
    text = await to_thread.run_sync(_metrics, operations_state(request))
    return Response(text, media_type=CONTENT_TYPE)


def _captures(state: OperationsState) -> list[dict[str, Any]]:
    return [
        {"pipeline": pipeline.name, **status.to_dict()}
        for pipeline in state.served.pipelines.values()
        for status in capture_statuses(pipeline)
    ]


def _metrics(state: OperationsState) -> str:
    return state.throttled.get("metrics", lambda: pipeline_metrics(list(state.served.pipelines.values())))


ROUTES = (
    ApiRoute(
        "GET",
        "/captures",
        list_captures,
        "read",
        "The captures of all pipelines",
        responses={"200": described("the captures", "captures")},
    ),
    ApiRoute(
        "GET",
        "/metrics",
        show_metrics,
        "read",
        "The figures of all pipelines, for Prometheus",
        responses={
            "200": {
                "description": "Prometheus' text form",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            }
        },
    ),
)
