"""The fixtures at work in the tests of ``docs/testing.md``, which run as printed in a pytest of their own."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
FILES = ("shop.py", "conftest.py", "test_shop.py")


class Outcomes:
    """Notes how each test ended."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.told[report.nodeid.rpartition("::")[2]] = report.outcome


def printed() -> dict[str, str]:
    """Return the files that the page prints, by name."""
    blocks = re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return dict(blocks)


def test_the_page_prints_a_pipeline_and_its_tests() -> None:
    assert tuple(printed()) == FILES


def test_the_tests_of_the_page_pass(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in printed().items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shop", raising=False)  # of another test
    outcomes = Outcomes()
    try:
        pytest.main(["-q", "-p", "no:cacheprovider", str(tmp_path)], plugins=[outcomes])
    finally:
        for name in ("shop", "test_shop", "conftest"):
            sys.modules.pop(name, None)
    tests = re.findall(r"^def (test_\w+)", printed()["test_shop.py"], re.MULTILINE)
    assert outcomes.told == dict.fromkeys(tests, "passed")
