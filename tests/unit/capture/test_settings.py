"""From when on somebody is warned."""

from __future__ import annotations

import pytest

from headwater.capture.settings import CaptureSettings


@pytest.mark.parametrize(
    ("most", "alert", "unnoticed"), [(None, None, None), (100, None, 50), (100, 80, 80), (None, 7, 7)]
)
def test_a_warning_comes_at_half_of_what_is_allowed_unless_another_limit_is_set(
    most: int | None, alert: int | None, unnoticed: int | None
) -> None:
    assert CaptureSettings(max_retained=most, alert_retained=alert).most_unnoticed == unnoticed
