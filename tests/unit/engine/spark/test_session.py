"""What is set for Spark where the user has set nothing, by where it runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from headwater.engine.spark.session import _defaults

BESIDE = ["local", "local[*]", "local[2,4]", "local-cluster[2,1,1024]"]
LOOPBACK = ["spark://127.0.0.1:7077", "spark://localhost:7077", "spark://[::1]:7077"]
ELSEWHERE = [
    "spark://10.0.0.5:7077",
    "spark://localhost.example:7077",
    "spark://a:1,b:2",
    "yarn",
    "k8s://x:1",
]


@pytest.mark.parametrize("master", BESIDE + LOOPBACK)
def test_a_driver_that_only_this_machine_needs_listens_on_loopback(master: str) -> None:
    assert _defaults(master)["spark.driver.host"] == "127.0.0.1"
    assert _defaults(master)["spark.driver.bindAddress"] == "127.0.0.1"


@pytest.mark.parametrize("master", ELSEWHERE)
def test_a_driver_that_others_must_reach_has_the_address_that_spark_finds(master: str) -> None:
    assert not [key for key in _defaults(master) if key.startswith("spark.driver.")]


def test_executors_look_for_the_users_modules_where_the_driver_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    path = _defaults("spark://10.0.0.5:7077")["spark.executorEnv.PYTHONPATH"].split(os.pathsep)
    assert str(tmp_path) in path
    assert not [each for each in path if each.startswith(os.path.dirname(os.__file__))]
    assert not [each for each in path if each.startswith(sys.prefix) and each.endswith("site-packages")]
    assert "spark.executorEnv.PYTHONPATH" not in _defaults("local[2]")
