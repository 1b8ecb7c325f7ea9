"""What a child printed last."""

from __future__ import annotations

import subprocess
import sys

from headwater.serve.operations.error_tail import TAIL_BYTES, ErrorTail


def test_the_end_of_what_a_child_prints_is_kept_and_no_more_and_it_is_never_held_up() -> None:
    code = "import sys; sys.stderr.write('x' * 1_000_000 + 'the end\\n')"
    with ErrorTail() as tail:
        child = subprocess.Popen([sys.executable, "-S", "-c", code], stderr=tail.input)
    assert child.wait(20) == 0
    assert tail.text().endswith("xthe end") and len(tail.text()) == TAIL_BYTES - 1


def test_what_a_child_has_started_and_left_behind_is_not_waited_for() -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '5']); raise SystemExit('gone')"
    with ErrorTail() as tail:
        child = subprocess.Popen([sys.executable, "-S", "-c", code], stderr=tail.input)
    assert child.wait(20) == 1
    assert tail.text() == "gone"
