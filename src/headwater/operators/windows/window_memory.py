"""What all windows store: their containers, the numbers of keys, and the clock of the last step.

Invariant: the clock of a state that is opened again is that of the step after which it was saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headwater.operators.memory.key_ids import KeyIds
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.sorted_runs import SortedRuns

Numbers = Mapping[str, tuple[object, str]]


class WindowState(Protocol):
    """What the states of windows have in common."""

    key_ids: KeyIds
    watermark: int


def window_memory(
    state: WindowState, containers: Mapping[str, SortedRuns], numbers: Numbers | None = None
) -> OperatorMemory:
    """Return the memory of a window."""
    return OperatorMemory(
        {**containers, "keys": state.key_ids.runs},
        {**state.key_ids.counters, **(numbers or {}), "watermark": (state, "watermark")},
    )
