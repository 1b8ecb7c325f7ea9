"""Routes by which a browser gets the notifications of a pipeline: the key that it needs, and its address.

A subscription changes to whom a pipeline sends, so it needs ``operate``. Invariant: an address is at a push
service that is known, as ``headwater.push`` has it, and is told to nobody.
"""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from headwater.api import push
from headwater.errors import UsageError
from headwater.pipeline.pipeline import Pipeline
from headwater.serve.http.answer import json_response
from headwater.serve.http.problem import HttpProblem
from headwater.serve.http.route import ApiRoute
from headwater.serve.http.small_body import json_object
from headwater.serve.operations.operations_state import operations_state
from headwater.serve.operations.pipelines import PIPELINE, described

_SUBSCRIPTION = "send what PushSubscription.toJSON() returns"
_ENDPOINT = 'send {"endpoint": …}, of the subscription that is to end'


async def show_push(request: Request) -> Response:
    """Answer with the key that a page subscribes with, and the sinks whose notifications it then gets."""
    pipeline = _notifying(request)
    try:
        key = await to_thread.run_sync(push.public_key, pipeline)
    except UsageError as error:  # what encrypts is not installed: no fault of who asks
        raise HttpProblem(409, error.message, detail=error.detail, hint=error.hint) from None
    return json_response({"key": key, "sinks": push.sinks(pipeline)})


async def subscribe(request: Request) -> Response:
    """Let a browser get the notifications of a pipeline."""
    pipeline = _notifying(request)
    given = await json_object(request, _SUBSCRIPTION)
    try:
        await to_thread.run_sync(push.subscribe, pipeline, given)
    except push.SubscriptionsFull as error:
        raise HttpProblem(409, error.message, detail=error.detail, hint=error.hint) from None
    return json_response({"subscribed": True})


async def unsubscribe(request: Request) -> Response:
    """Let a browser get nothing more; one that is not known gets nothing already."""
    pipeline = _notifying(request)
    endpoint = (await json_object(request, _ENDPOINT)).get("endpoint")
    if not isinstance(endpoint, str):
        raise HttpProblem(400, "the body names no endpoint", hint=_ENDPOINT)
    await to_thread.run_sync(push.unsubscribe, pipeline, endpoint)
    return json_response({"subscribed": False})


def _notifying(request: Request) -> Pipeline:
    """Return the pipeline of a request, if it sends notifications."""
    pipeline = operations_state(request).pipeline(request.path_params["pipeline"])
    if not push.sinks(pipeline):
        hint = "declare a sink with targets.push, and start the server again"
        raise HttpProblem(404, f'pipeline "{pipeline.name}" sends no notifications', hint=hint)
    return pipeline


def _body(*required: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "required": list(required), "properties": properties}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


_TEXT = {"type": "string"}
_KEYS = {"type": "object", "required": ["p256dh", "auth"], "properties": {"p256dh": _TEXT, "auth": _TEXT}}
_AT = "/pipelines/{pipeline}/push"
ROUTES = (
    ApiRoute(
        "GET",
        _AT,
        show_push,
        "read",
        "The key with which a browser subscribes to the notifications of a pipeline",
        parameters=(PIPELINE,),
        responses={"200": described("the key, and the sinks that notify", "key", "sinks")},
    ),
    ApiRoute(
        "POST",
        f"{_AT}/subscribe",
        subscribe,
        "operate",
        "Let a browser get the notifications of a pipeline",
        parameters=(PIPELINE,),
        body=_body("endpoint", "keys", endpoint=_TEXT, keys=_KEYS),
        responses={"200": described("it gets them from now on", "subscribed")},
    ),
    ApiRoute(
        "POST",
        f"{_AT}/unsubscribe",
        unsubscribe,
        "operate",
        "Let a browser get the notifications of a pipeline no more",
        parameters=(PIPELINE,),
        body=_body("endpoint", endpoint=_TEXT),
        responses={"200": described("it gets none", "subscribed")},
    ),
)
