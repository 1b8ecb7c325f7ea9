"""The house: which folder may import which, no cycles, who needs pyspark, and what each folder is for.

Imports inside of functions, and for type checkers alone, count as much as those at the top: they only hide
a cycle.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import headwater
import headwater.views

SOURCE = Path(__file__).parents[2] / "src"
FILES = sorted((SOURCE / "headwater").rglob("*.py"))
FOLDERS = sorted({path.parent for path in FILES})

LAYERS = (
    "backoff bisection closing computed connection_limits device_clock durable durations errors expressions"
    " liveness names record schema sqlite_wal store_address topic topic_errors webhook_signature wire_format",
    "values formats operators log client",
    "stores queue views sinks",
    "pipeline",
    "engine",
    "api clock spark transforms drawing capture ingest sourcing",  # what programs call
    "serve",
    "cli testing __main__",
)
"""A module imports from its own layer and from those before it. The package is in the last but one."""

WITH_PYSPARK = (
    "engine",
    "engine/batch",
    "engine/exchange",
    "engine/failure",
    "engine/plan",
    "engine/proof",
    "engine/source",
    "engine/spark",
    "engine/stage",
)
"""The folders whose own files may import pyspark."""

FILES_IN_A_FOLDER = 24

AGAINST_THE_LAYERS: frozenset[tuple[str, str]] = frozenset()
"""Imports that are still to be mended: (who, whom)."""

PUBLIC = (
    *("headwater.api", "headwater.cli", "headwater.clock", "headwater.drawing", "headwater.ingest"),
    *("headwater.queue", "headwater.sourcing", "headwater.values"),
)
"""What the command line may import beside the names of ``headwater`` itself and the vocabulary. Text is read
into rows, and rows written as text, by ``headwater.values``."""
OF_SERVERS = (
    *("headwater.api", "headwater.serve", "headwater.values"),
    "headwater.sinks.crash",  # documented for sinks: points at which a test lets a process die
    "headwater.stores.sqlite.connection",  # a file of its own: the requests that it has stored
)
"""What a server may import beside public names, each from where it is, and the vocabulary."""


class Import(NamedTuple):
    """That a module imports another."""

    who: str
    whom: str


@cache
def modules() -> Mapping[str, Path]:
    return {_name(path): path for path in FILES}


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports() -> frozenset[Import]:
    return frozenset(each for name, path in modules().items() for each in _imports(name, path))


def _imports(who: str, path: Path) -> Iterator[Import]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(who, alias.name)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: an import that is relative"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield Import(who, inner if inner in modules() else node.module)


def ours() -> list[Import]:
    return [each for each in imports() if each.whom.split(".")[0] == "headwater" and each.who != each.whom]


def layer(module: str) -> int:
    if module == "headwater":
        return len(LAYERS) - 2
    part = module.split(".")[1]
    found = [number for number, names in enumerate(LAYERS) if part in names.split()]
    assert found, f"{module} is in no layer: say in which it belongs"
    return found[0]


def test_imports_go_from_the_upper_layers_to_the_lower_ones() -> None:
    against = {(each.who, each.whom) for each in ours() if layer(each.whom) > layer(each.who)}
    assert against - AGAINST_THE_LAYERS == set()
    assert AGAINST_THE_LAYERS - against == set(), "mended: take it off the list"


def test_no_module_imports_itself_through_others() -> None:
    graph = defaultdict(set)
    for each in ours():
        graph[each.who].add(each.whom)
    assert cycles(graph) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(SOURCE)))
def test_what_lies_in_a_folder_side_by_side_has_no_cycle(folder: Path) -> None:
    inside, graph = _name(folder / "__init__.py") + ".", defaultdict(set)
    for each in ours():
        if each.who.startswith(inside) and each.whom.startswith(inside):
            who, whom = (name.removeprefix(inside).split(".")[0] for name in (each.who, each.whom))
            if who != whom:
                graph[who].add(whom)
    assert cycles(graph) == []


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return what is left when all are taken away, again and again, that import nothing that is left."""
    left = {name: set(others) for name, others in graph.items()}
    while True:
        done = {name for name, others in left.items() if not others & left.keys()}
        if not done:
            break
        left = {name: others for name, others in left.items() if name not in done}
    return [sorted([name, *sorted(others & left.keys())]) for name, others in sorted(left.items())]


def test_only_the_parts_of_the_engine_that_need_it_import_pyspark() -> None:
    allowed = {SOURCE / "headwater" / folder for folder in WITH_PYSPARK}
    found = {each.who for each in imports() if each.whom.split(".")[0] in ("pyspark", "py4j")}
    assert {name for name in found if modules()[name].parent not in allowed} == set()


def test_everything_else_is_imported_without_pyspark() -> None:
    free = [name for name in modules() if _is_free(name) and name != "headwater.__main__"]
    code = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
    code += "    assert 'pyspark' not in sys.modules, name"
    done = subprocess.run([sys.executable, "-c", code, *free], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _is_free(name: str) -> bool:
    folder = modules()[name].parent.relative_to(SOURCE / "headwater").as_posix()
    return folder not in WITH_PYSPARK


def test_the_command_line_imports_the_public_api_alone() -> None:
    found = {each.whom for each in ours() if each.who.startswith("headwater.cli")} - {"headwater"}
    assert {name for name in found if layer(name) > 0 and not name.startswith(PUBLIC)} == set()


def test_the_server_imports_the_public_api_alone() -> None:
    public = {(module, name) for module, names in headwater._NAMES_BY_MODULE.items() for name in names}
    public |= {("headwater.views", name) for name in headwater.views.__all__}
    serving = {name: path for name, path in modules().items() if name.startswith("headwater.serve")}
    found = {each for path in serving.values() for each in _imported_names(path)} - public
    assert {each for each in found if layer(each[0]) > 0 and not each[0].startswith(OF_SERVERS)} == set()


def _imported_names(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what a file imports of ours: module and name; of a module that is imported whole, no name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("headwater"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (inner, "") if inner in modules() else (node.module, alias.name)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.startswith("headwater"))


def test_kafka_and_the_embedded_log_know_nothing_of_each_other() -> None:
    embedded, kafka = "headwater.log.embedded", "headwater.log.kafka"
    assert [each for each in ours() if each.who.startswith(embedded) and each.whom.startswith(kafka)] == []
    assert [each for each in ours() if each.who.startswith(kafka) and each.whom.startswith(embedded)] == []


def test_only_the_kafka_backend_needs_its_client() -> None:
    found = {each.who for each in imports() if each.whom.split(".")[0] == "confluent_kafka"}
    assert {name for name in found if not name.startswith("headwater.log.kafka.")} == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_says_why_it_exists(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(SOURCE)))
def test_every_folder_is_a_room_with_a_name_on_its_door(folder: Path) -> None:
    assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    assert len(list(folder.glob("*.py"))) <= FILES_IN_A_FOLDER


@pytest.mark.parametrize(
    "module",
    [
        "headwater.pipeline.targets",
        "headwater.views",
        "headwater.views.sqlite.store",
        "headwater.views.postgres",
        "headwater.transforms.joins",
        "headwater.engine.runner",
    ],
)
def test_a_module_can_be_the_first_that_is_imported(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
