"""What holds for every form of drawing."""

from __future__ import annotations

import pytest

from headwater import Pipeline
from headwater.drawing import FORMS
from headwater.errors import PipelineError


@pytest.mark.parametrize("form", FORMS)
def test_the_same_pipeline_is_always_drawn_the_same(shop: Pipeline, form: str) -> None:
    assert FORMS[form](shop) == FORMS[form](shop)


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_pipeline_can_be_drawn(form: str) -> None:
    FORMS[form](Pipeline("empty"))


@pytest.mark.parametrize("form", FORMS)
def test_a_pipeline_with_a_problem_is_not_drawn(shop: Pipeline, form: str) -> None:
    shop.sql("wrong", "SELECT * FROM clikcs", key="id")
    with pytest.raises(PipelineError, match='has no upstream "clikcs"'):
        FORMS[form](shop)
