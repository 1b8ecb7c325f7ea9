"""The way to a handler: found as Starlette would find it, allowed before it runs, and its failures told."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from headwater import TokenStore
from headwater.errors import UnknownView
from headwater.serve.app import ROUTES
from headwater.serve.http.openapi import PREFIX
from headwater.serve.http.route import ApiRoute
from headwater.serve.security.access import Access
from headwater.serve.security.router import REMEMBERED, Router


async def told(request: Request) -> Response:
    return PlainTextResponse(repr(sorted(request.path_params.items())))


async def failing(_request: Request) -> Response:
    raise ValueError("of ours")


async def unknown(_request: Request) -> Response:
    raise UnknownView('no view "x"')


def route(path: str, handler: object = told, method: str = "GET", scope: object = None) -> ApiRoute:
    return ApiRoute(method, path, handler, scope, "", subject="id" if "{id}" in path else None)  # type: ignore[arg-type]


def client(*routes: ApiRoute, access: Access | None = None) -> TestClient:
    router = Router(routes, access or Access(None, True), Starlette())
    return TestClient(router, raise_server_exceptions=False)


PATHS = [
    "/v1/topics/orders", "/v1/topics/a b", "/v1/topics/", "/v1/topics/x/records", "/v1/views/stock/changes",
    "/v1/views/stock/a/b", "/v1/views/stock", "/v1/health", "/v1/health\n", "/nothing", "/v1",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_the_route_is_the_one_that_starlette_would_choose(method: str, path: str) -> None:
    async def chosen(request: Request) -> Response:
        return Response()

    router, found = Router(ROUTES, Access(None, True), Starlette())._match(path), None
    scope = {"type": "http", "method": method, "path": path}
    for each in ROUTES:
        match, child = Route(PREFIX + each.path, chosen, methods=[each.method]).matches(scope)
        if match.value == 2:
            found = (each, child["path_params"])
            break
    wanted = "GET" if method == "HEAD" else method
    assert (router.routes.get(wanted) if router else None) == found


def test_a_handler_runs_only_when_its_scope_is_allowed_for_its_subject(tmp_path: Path) -> None:
    tokens = TokenStore(tmp_path / "tokens.json")
    token = tokens.create("one", ["send:a"])
    calls = client(route("/topics/{id}", method="POST", scope="send"), access=Access(tokens, True))
    shown = {"Authorization": f"Bearer {token}"}
    assert calls.post("/v1/topics/a").status_code == 401
    assert calls.post("/v1/topics/b", headers=shown).status_code == 403
    assert calls.post("/v1/topics/a", headers=shown).text == "[('id', 'a')]"
    assert calls.post("/v1/topics/a").status_code == 401  # a path that is remembered allows nothing


def test_what_a_handler_raises_is_a_problem_and_a_wrong_method_is_told_the_right_ones() -> None:
    calls = client(route("/fail", failing), route("/view", unknown), route("/view", told, "POST"))
    assert (calls.get("/v1/fail").status_code, calls.get("/v1/view").status_code) == (500, 404)
    assert calls.get("/v1/fail").json()["title"] == "the server failed"
    assert calls.get("/v1/view").headers["content-type"] == "application/problem+json"
    wrong = calls.delete("/v1/view")
    assert wrong.status_code == 405 and wrong.headers["allow"] == "GET, POST, HEAD"


def test_more_paths_than_are_remembered_are_told_apart() -> None:
    calls = client(route("/topics/{id}"))
    for number in [*range(REMEMBERED + 5), *range(5)]:
        assert calls.get(f"/v1/topics/{number}").text == f"[('id', '{number}')]"


def test_parameters_of_one_request_are_not_those_of_another() -> None:
    async def changing(request: Request) -> Response:
        request.path_params["id"] += "!"
        return await told(request)

    calls = client(route("/topics/{id}", changing))
    assert [calls.get("/v1/topics/a").text for _ in range(2)] == ["[('id', 'a!')]"] * 2
