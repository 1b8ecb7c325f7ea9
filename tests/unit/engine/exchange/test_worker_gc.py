"""What a worker has loaded is left out of garbage collection, once; what it computes is collected as ever."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from headwater.engine.exchange import worker_gc


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    worker_gc.freeze.cache_clear()
    gc.unfreeze()
    yield
    gc.unfreeze()


class Ring:
    """An object that only a collection can free."""

    def __init__(self) -> None:
        self.me = self


def test_what_is_loaded_when_our_code_first_runs_is_not_walked_again() -> None:
    worker_gc.freeze()
    assert gc.get_freeze_count() > 0


def test_only_the_first_call_counts() -> None:
    worker_gc.freeze()
    gc.unfreeze()
    worker_gc.freeze()
    assert gc.get_freeze_count() == 0


def test_garbage_of_before_and_of_later_tasks_is_freed() -> None:
    before = weakref.ref(Ring())
    worker_gc.freeze()
    assert before() is None
    later = weakref.ref(Ring())
    gc.collect()
    assert later() is None
