"""Ways in, in a line."""

from __future__ import annotations

from headwater.cli.formats import ingest_lines
from headwater.ingest.status import LOSSES, IngestStatus


def test_every_loss_has_its_words() -> None:
    status = IngestStatus("m", "x", "running", dict.fromkeys(LOSSES, 2))
    assert ingest_lines.line(status).count(" 2 ") == len(LOSSES)
    assert ingest_lines.warning(status).count("2 ") == len(LOSSES)


def test_a_line_tells_what_came_and_what_became_of_it() -> None:
    status = IngestStatus("m", "x", "running", {"datagrams": 1, "lines": 1200, "rows": 1199, "malformed": 1})
    assert ingest_lines.line(status) == "m: running, 1 datagram, 1,200 lines, 1,199 rows, 1 malformed"
