"""The page and its files: served with a strict policy, whole, and with nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from headwater.serve.dashboard.page import PAGE, STATIC

MODULES = sorted(path for path in STATIC.rglob("*.js") if "vendor" not in path.parts)
OWN = [
    *MODULES,
    *(path for path in STATIC.rglob("*") if path.suffix in (".css", ".html") and "vendor" not in path.parts),
]
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"style\""
)
IMPORT = re.compile(r'from "(\.[^"]+)"')


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=list(PAGE))) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/static/vendor/uplot/uPlot.iife.min.js"])
def test_page_and_files_come_with_a_policy_that_allows_nothing_from_elsewhere(
    client: TestClient, path: str
) -> None:
    answer = client.get(path)
    policy = answer.headers["content-security-policy"]
    assert answer.status_code == 200
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_file_that_is_the_same_is_not_sent_again(client: TestClient) -> None:
    tag = client.get("/static/app.js").headers["etag"]
    assert client.get("/static/app.js", headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.parametrize(
    "path", ["/static/../page.py", "/static/%2e%2e/page.py", "/static//etc/passwd", "/static/"]
)
def test_nothing_but_the_page_s_files_is_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_the_page_may_only_be_got(client: TestClient) -> None:
    assert client.post("/").status_code == 405


def test_everything_that_the_page_loads_is_there(client: TestClient) -> None:
    page = (STATIC / "index.html").read_text()
    named = re.findall(r'(?:href|src)="(static/[^"]+)"', page)
    assert len(named) >= 6
    assert [name for name in named if client.get(f"/{name}").status_code != 200] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(STATIC).as_posix())
def test_a_module_says_why_it_exists_and_imports_what_is_there(module: Path) -> None:
    text = module.read_text()
    assert text.startswith("// ")
    assert len(text.splitlines()) <= 250
    assert [each for each in IMPORT.findall(text) if not (module.parent / each).resolve().is_file()] == []


@pytest.mark.parametrize("file", OWN, ids=lambda path: path.relative_to(STATIC).as_posix())
def test_no_file_makes_markup_of_text_or_names_another_host(file: Path) -> None:
    text = file.read_text().replace("http://www.w3.org/2000/svg", "")
    assert FORBIDDEN.findall(text) == []
    assert re.findall(r"https?://\S+", text) == []
    assert re.findall(r"<script(?![^>]*src=)|\sstyle=\"|\son[a-z]+=\"", text) == []


def test_the_chart_library_comes_with_its_licence() -> None:
    assert "MIT License" in (STATIC / "vendor" / "uplot" / "LICENSE").read_text()


def test_the_service_worker_lies_beside_the_page_and_acts_below_it(client: TestClient) -> None:
    answer = client.get("/service_worker.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.text == (STATIC / "service_worker.js").read_text()
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-cache"
