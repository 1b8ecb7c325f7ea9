"""What is said of deliveries."""

from __future__ import annotations

from headwater import Progress
from headwater.cli.formats.delivery_lines import lines
from headwater.sinks.delivery.figures import DeliveryStatus


def said(deliveries: DeliveryStatus | None) -> list[tuple[str, str]]:
    return list(lines(Progress("hooks", "sink", 1, None, (), 0, None, None, deliveries=deliveries)))


def test_what_waits_is_a_note_and_what_is_set_aside_a_warning() -> None:
    assert said(None) == said(DeliveryStatus(0, 0, 9)) == []
    assert said(DeliveryStatus(2, 0, 0)) == [("note", 'sink "hooks" has 2 deliveries waiting')]
    both = said(DeliveryStatus(1, 1, 0, "the endpoint answers 400"))
    assert [kind for kind, _ in both] == ["warning", "note"]
