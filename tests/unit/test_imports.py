"""The rules of who may import whom, so that each folder stays one concern."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
FILES = sorted(SOURCE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def within(path: Path, folder: str) -> bool:
    return (SOURCE / "headwater" / folder) in path.parents


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_the_engine_imports_pyspark(path: Path) -> None:
    if not within(path, "engine"):
        assert not any(name.split(".")[0] == "pyspark" for name in imports(path))


@pytest.mark.parametrize("path", [p for p in FILES if within(p, "cli")], ids=lambda p: p.name)
def test_the_command_line_calls_public_api_only(path: Path) -> None:
    for name in imports(path):
        assert not name.startswith(("headwater.log.embedded", "headwater.log.kafka")), name


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_kafka_and_the_embedded_log_know_nothing_of_each_other(path: Path) -> None:
    if within(path, "log/embedded"):
        assert not any(name.startswith("headwater.log.kafka") for name in imports(path))
    if within(path, "log/kafka"):
        assert not any(name.startswith("headwater.log.embedded") for name in imports(path))


@pytest.mark.parametrize("path", [p for p in FILES if not within(p, "log/kafka")], ids=lambda p: p.name)
def test_only_the_kafka_backend_needs_its_client(path: Path) -> None:
    assert not any(name.split(".")[0] == "confluent_kafka" for name in imports(path))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_every_module_says_why_it_exists(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize(
    "module",
    [
        "headwater.sinks.targets",
        "headwater.sinks.views",
        "headwater.sinks.sqlite.store",
        "headwater.sinks.postgres",
        "headwater.operators.joins.doors",
        "headwater.engine.runner",
    ],
)
def test_a_module_can_be_the_first_that_is_imported(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
