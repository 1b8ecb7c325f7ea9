"""What there is not is said, with what there is."""

from __future__ import annotations

import pytest

import headwater
from headwater import Pipeline
from headwater.serve.http.problem import HttpProblem
from headwater.serve.http.served import Served
from headwater.serve.operations.operations_state import OperationsState


def test_what_there_is_not_is_a_problem_that_names_what_there_is(shop: Pipeline) -> None:
    with Served(headwater.open(shop.log), {"shop": shop}, {}) as served, OperationsState(served) as operating:
        assert operating.node("shop", "seen").name == "seen"
        for call, status in (
            (lambda: operating.pipeline("shpo"), 404),
            (lambda: operating.part("shop", "sen"), 404),
            (lambda: operating.node("shop", "orders"), 409),
        ):
            with pytest.raises(HttpProblem) as caught:
                call()
            assert (caught.value.status, caught.value.hint is not None) == (status, True)
        assert operating.view_rows(shop) == {}, "no views are open"
