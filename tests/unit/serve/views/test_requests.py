"""What a request asks of a view, read from its path."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.serve.views.requests import path_key


def test_a_slash_in_a_key_is_encoded_and_others_part_its_columns() -> None:
    assert path_key(b"/v1/views/stock/a%2Fb/%C3%A9") == ["a/b", "é"]
    with pytest.raises(UsageError):
        path_key(b"/v1/views/stock/%ff")
