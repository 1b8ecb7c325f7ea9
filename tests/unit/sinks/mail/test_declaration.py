"""What mail is declared to be."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headwater import targets
from headwater.errors import UsageError

COLUMNS = pa.schema([("item", pa.string())])


@pytest.mark.parametrize(
    "wrong",
    [{"to": []}, {"to": "ops"}, {"sender": None}, {"sender": "x"}, {"rate_limit": "many"}, {"url": "x"}],
)
def test_what_cannot_be_meant_is_refused_at_once(wrong: dict[str, Any]) -> None:
    right = {"url": "smtp://mail.example", "to": "ops@shop.example", "sender": "a@shop.example"}
    targets.mail(**right, subject="{item}").check(COLUMNS)
    with pytest.raises(UsageError):
        targets.mail(**{**right, **wrong}, subject="{item}")


def test_a_template_is_checked_with_the_columns() -> None:
    target = targets.mail(
        "smtp://a%40shop.example@mail.example", "ops@shop.example", "{items}", body="{item}"
    )
    with pytest.raises(UsageError, match='no column "items"'):
        target.check(COLUMNS)
    assert "mail.example" not in repr(target)
