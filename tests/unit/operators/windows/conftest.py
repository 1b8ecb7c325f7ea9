"""The kit's assertions tell what differs, as those of tests do."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("unit.operators.windows.window_oracle")
