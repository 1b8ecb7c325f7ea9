"""How far a pipeline has got, as it has written it down."""

from __future__ import annotations

import pytest

import headwater
from headwater import Pipeline
from headwater.errors import HeadwaterError, PipelineError


def test_what_has_never_run_has_no_status(shop: Pipeline) -> None:
    with pytest.raises(HeadwaterError, match="has not run yet"):
        headwater.status(shop)


def test_a_pipeline_that_does_not_fit_together_has_no_status(broken: Pipeline) -> None:
    with pytest.raises(PipelineError, match="oders"):
        headwater.status(broken)
