"""Routes about topics as they are: sizes, partitions, producers, groups, and how late rows come."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from headwater.api.figures.node_details import histogram
from headwater.api.figures.topic_details import topic_details, topic_summaries
from headwater.serve.http.answer import json_response
from headwater.serve.http.route import ApiRoute, Parameter
from headwater.serve.operations.operations_state import OperationsState, operations_state
from headwater.serve.operations.pipelines import described

TOPIC = Parameter("topic", "the name of a topic", "path")


async def list_topics(request: Request) -> Response:
    """Answer with the topics of the log."""
    return json_response({"topics": await to_thread.run_sync(_topics, operations_state(request))})


async def show_topic(request: Request) -> Response:
    """Answer with a topic in full."""
    state, topic = operations_state(request), request.path_params["topic"]
    return json_response(await to_thread.run_sync(_topic, state, topic))


async def show_lateness(request: Request) -> Response:
    """Answer with how late the newest rows of a topic came."""
    state, topic = operations_state(request), request.path_params["topic"]
    return json_response(await to_thread.run_sync(_lateness, state, topic))


def _topics(state: OperationsState) -> list[dict[str, Any]]:
    pipelines = list(state.served.pipelines.values())
    found = state.throttled.get("topics", lambda: topic_summaries(state.served.log, pipelines))
    return [each.to_dict() for each in found]


def _topic(state: OperationsState, topic: str) -> dict[str, Any]:
    pipelines = list(state.served.pipelines.values())
    state.served.log.topic(topic)  # says so if there is none, and no value is kept of it
    details = state.throttled.get(("topic", topic), lambda: topic_details(state.served.log, topic, pipelines))
    return details.to_dict()


def _lateness(state: OperationsState, topic: str) -> dict[str, Any]:
    state.served.log.topic(topic)
    report = state.lateness(topic)
    return {**report.to_dict(), **histogram(report).to_dict()}


ROUTES = (
    ApiRoute(
        "GET",
        "/topics",
        list_topics,
        "read",
        "The topics of the log",
        responses={"200": described("the topics", "topics")},
    ),
    ApiRoute(
        "GET",
        "/topics/{topic}",
        show_topic,
        "read",
        "A topic: its partitions, producers with their clocks, groups with their lag",
        parameters=(TOPIC,),
        responses={"200": described("the topic", "name", "partitions", "producers", "groups")},
        subject="topic",
    ),
    ApiRoute(
        "GET",
        "/topics/{topic}/lateness",
        show_lateness,
        "read",
        "How late the newest rows of a topic came, and which lateness would have kept them",
        parameters=(TOPIC,),
        responses={"200": described("the report, with a histogram", "topic", "rows", "bounds", "counts")},
        subject="topic",
    ),
)
