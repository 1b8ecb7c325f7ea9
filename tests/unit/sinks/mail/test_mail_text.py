"""What mails say."""

from __future__ import annotations

import orjson
import pyarrow as pa

from headwater.sinks.delivery.template import TextTemplate
from headwater.sinks.mail.mail_text import MailText, every_column
from headwater.values.fitting import fit, shaped

SHAPE = shaped("mail", "item STRING, n BIGINT")


def test_a_mail_is_made_of_its_row_and_a_deletion_says_nothing() -> None:
    mails = MailText(SHAPE, TextTemplate("{item} is out"), every_column(["item", "n"]))
    table = pa.table({"item": ["tea\nrum", "rum"], "n": [1, 2], "_deleted": [False, True]})
    said, nothing = mails.payloads(fit(table, SHAPE))
    assert said is not None and nothing is None
    assert orjson.loads(said) == {"subject": "tea rum is out", "text": "item: tea\nrum\nn: 1"}


def test_a_summary_counts_and_shows_the_first() -> None:
    mails = MailText(SHAPE, TextTemplate(""), TextTemplate(""))
    said = orjson.loads(mails.summary([orjson.dumps({"subject": each}) for each in "ab"], 1234))
    assert said["subject"] == "1,234 messages: a, …"
    assert said["text"].splitlines()[2:] == ["a", "b", "", "… and 1,232 more"]


def test_braces_in_the_name_of_a_column_are_text() -> None:
    assert every_column(["a"]).render({"a": 1}) == "a: 1"
