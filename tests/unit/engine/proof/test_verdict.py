"""What the verdict on a node says: what was not compared is neither right nor wrong."""

from __future__ import annotations

from headwater.engine.proof.verdict import EXAMPLES, NOT_BEGUN, Verdict


def test_what_was_not_proved_is_neither_right_nor_wrong() -> None:
    unproved = Verdict("totals", unproved=NOT_BEGUN)
    assert (unproved.begun, unproved.facts()["ok"]) == (False, None)
    many = Verdict("totals", missing=tuple({"id": n} for n in range(20)))
    assert (len(list(many.examples())), many.facts()["missing"]) == (EXAMPLES, 20)
