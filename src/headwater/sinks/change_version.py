"""The version of a row in a target that has no transactions: by it the target itself tells older from newer.

A batch's number counts first, then the runner's epoch, so that what a runner writes which was replaced is
older than the same batch from its successor. A batch has one row per key when it is written, so rows of one
need no order among them. Invariant: versions grow with the batches and, within a batch, with the runners;
each fits into 53 bits, so that it is the same number in JSON and in Lua.
"""

from __future__ import annotations

from headwater.errors import UsageError

_EPOCHS = 1 << 20
_MOST = (1 << 53) // _EPOCHS - 2


def change_version(batch: int, epoch: int) -> int:
    """Return the version of the rows of a batch, as one runner writes them.

    >>> change_version(7, 2) < change_version(7, 3) < change_version(8, 1)
    True
    """
    if batch > _MOST:
        raise UsageError(f"batch number {batch} is too large for a version")
    return (batch + 1) * _EPOCHS + min(epoch, _EPOCHS - 1)


def is_of_batch(version: int, batch: int) -> bool:
    """Tell whether a version is of a batch or of one before it.

    >>> is_of_batch(change_version(7, 2), 7), is_of_batch(change_version(8, 1), 7)
    (True, False)
    """
    return version < (batch + 2) * _EPOCHS
