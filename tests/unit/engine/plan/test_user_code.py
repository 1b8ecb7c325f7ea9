"""Node functions are called, and whose code it was is said when one fails. Without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.engine.plan import user_code
from headwater.errors import PipelineError, UsageError
from headwater.operators.spec import setting_aside
from headwater.pipeline.node import NodeCode, OnError, ViewNode


def node(function: Callable[..., Any], on_error: OnError = "stop") -> ViewNode:
    code = NodeCode(upstreams=("orders",), function=function)
    return ViewNode(name="totals", file=__file__, line=3, key=("id",), code=code, on_error=on_error)


def failing(error: BaseException) -> Callable[..., Any]:
    def totals() -> None:
        raise error

    return totals


def test_what_is_no_dataframe_is_refused() -> None:
    with pytest.raises(PipelineError, match='view "totals" returned NoneType, not a DataFrame'):
        user_code.call(node(lambda: None), {})


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("who"), "failed when it was called: KeyError"),
        (SystemExit(3), "ended the program when it was called"),
        (UsageError("lateness is negative"), ": lateness is negative"),
        (ValueError("[CALL_ON_STREAMING_DATASET_UNSUPPORTED] no"), "looks at its rows when it is called"),
    ],
)
def test_what_a_function_raises_is_told_with_the_line_where_it_did(error: BaseException, said: str) -> None:
    function = failing(error)
    with pytest.raises(PipelineError) as told:
        user_code.call(node(function), {})
    assert said in told.value.message
    assert f"test_user_code.py:{function.__code__.co_firstlineno + 1}" in str(told.value)


def test_an_error_that_has_its_place_is_left_as_it_is() -> None:
    error = PipelineError("already told", location="shop.py:9")
    with pytest.raises(PipelineError) as told:
        user_code.call(node(failing(error)), {})
    assert told.value is error


def test_operators_learn_whether_rows_are_set_aside_only_during_the_call() -> None:
    seen: list[bool] = []
    for on_error in ("stop", "dead_letter"):
        with pytest.raises(PipelineError, match="not a DataFrame"):
            user_code.call(node(lambda: seen.append(setting_aside.get()), on_error), {})
    assert (seen, setting_aside.get()) == ([False, True], False)


def test_an_exception_is_said_without_sparks_codes_and_javas_names() -> None:
    java = "An error occurred while calling o1.x.\n: org.apache.spark.Odd: [A_B.C] no SQLSTATE: 42000\n\tat x"
    assert user_code.one_line(ValueError(java)) == "no"
    assert user_code.one_line(ValueError()) == "ValueError"
