"""The description of the API: OpenAPI 3.1, made of the routes themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from headwater.serve.http.problem import MEDIA_TYPE
from headwater.serve.http.route import ApiRoute, Parameter

PREFIX = "/v1"
_CONVERTER = re.compile(r":[a-z]+\}")
"""What a path of the router says of a parameter, and one of the description does not: ``{key:path}``."""
_PROBLEM = {
    "description": "a problem document (RFC 9457)",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_PROBLEM_SCHEMA = {
    "type": "object",
    "required": ["title", "status"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "kind": {"type": "string", "enum": ["no_row", "unknown_topic", "unknown_view"]},
        "detail": {"type": "string"},
        "hint": {"type": "string"},
        "row": {"type": "integer"},
        "column": {"type": "string"},
    },
}


def describe(routes: Iterable[ApiRoute], *, tokens: bool = False) -> dict[str, Any]:
    """Return the description of routes, of a server that asks for tokens or does not."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        path = _CONVERTER.sub("}", PREFIX + route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, tokens)
    components: dict[str, Any] = {"schemas": {"Problem": _PROBLEM_SCHEMA}}
    if tokens:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headwater", "version": version("headwater")},
        "paths": paths,
        "components": components,
    }


def _operation(route: ApiRoute, tokens: bool) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "parameters": [_parameter(each) for each in route.parameters],
        "responses": {**route.responses, "default": _PROBLEM},
    }
    if route.body is not None:
        operation["requestBody"] = route.body
    if tokens and route.scope is not None:
        operation["security"] = [{"token": []}]
    return operation


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.where == "path",
        "description": parameter.about,
        "schema": parameter.schema,
    }
