"""What a process has opened is refused to its forked children."""

from __future__ import annotations

import os

import pytest

from headwater.errors import UsageError
from headwater.log.process import check_process


def test_the_process_that_opened_something_goes_on() -> None:
    check_process(os.getpid())


def test_another_process_is_told_to_open_it_again() -> None:
    with pytest.raises(UsageError, match="another process") as refused:
        check_process(os.getppid())
    assert "after a fork" in str(refused.value.hint)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_is_another_process() -> None:
    opened_in = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            check_process(opened_in)
        except UsageError:
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    check_process(opened_in)
