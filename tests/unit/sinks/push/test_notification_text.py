"""What notifications say."""

from __future__ import annotations

import orjson
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.sinks.delivery.template import TextTemplate
from headwater.sinks.push.notification_text import NotificationText
from headwater.values.fitting import fit, shaped

SHAPE = shaped("push", "item STRING")
TEXTS = NotificationText(
    TextTemplate("{item} is out"), TextTemplate("Order {item}."), TextTemplate("/{item}")
)


def test_a_notification_is_made_of_its_row_and_a_deletion_says_nothing() -> None:
    table = pa.table({"item": ["tea", "rum"], "_deleted": [False, True]})
    said, nothing = TEXTS.payloads(fit(table, SHAPE))
    assert said is not None and nothing is None
    assert orjson.loads(said) == {"title": "tea is out", "body": "Order tea.", "url": "/tea"}
    assert orjson.loads(TEXTS.summary([said], 7))["title"] == "7 notifications"


@given(st.text(st.characters(), min_size=1).map(lambda text: text * 3000))
def test_a_notification_fits_whatever_a_column_holds(item: str) -> None:
    table = pa.table({"item": [item.encode(errors="replace").decode()[:9000]]})
    (said,) = TEXTS.payloads(fit(table, SHAPE))
    assert said is not None and len(said) <= 3900


def test_a_link_is_whole_or_left_out() -> None:
    said = TEXTS.payloads(fit(pa.table({"item": ["a" * 999, "a" * 1000]}), SHAPE))
    assert [orjson.loads(each or b"")["url"] for each in said] == ["/" + "a" * 999, ""]
