"""The version of a row in a target that has no transactions: by it the target itself tells older from newer.

The version of the node counts first, so that whatever was written before a rebuild is older than what the
rebuild has written; then the batch's number, then the runner's epoch, so that what a runner writes which was
replaced is older than the same batch from its successor. A batch has one row per key when it is written, so
rows of one need no order among them. Invariant: versions grow with rebuilds, within them with batches and,
within a batch, with the runners, up to the 4,095th; each fits into 53 bits, so that it is the same number in
JSON and in Lua.
"""

from __future__ import annotations

from headwater.errors import UsageError

_REBUILDS, _BATCHES, _EPOCHS = 1 << 8, 1 << 33, 1 << 12


def change_version(batch: int, epoch: int, rebuild: int = 1) -> int:
    """Return the version of the rows of a batch, as one runner writes them to a version of its node.

    >>> change_version(7, 2) < change_version(7, 3) < change_version(8, 1) < change_version(0, 1, rebuild=2)
    True
    """
    if batch > _BATCHES - 2 or rebuild > _REBUILDS:
        raise UsageError(f"batch number {batch} of version {rebuild} is too large for a version of a row")
    return ((rebuild - 1) * _BATCHES + batch + 1) * _EPOCHS + min(epoch, _EPOCHS - 1)


def is_of_batch(version: int, batch: int, rebuild: int = 1) -> bool:
    """Tell whether a version is of a batch or of one before it.

    >>> is_of_batch(change_version(7, 2), 7), is_of_batch(change_version(8, 1), 7)
    (True, False)
    """
    return version < change_version(batch + 1, 0, rebuild)


def rebuild_of(version: int) -> int:
    """Return to which version of its node a row was written.

    >>> rebuild_of(change_version(7, 2, rebuild=3))
    3
    """
    return version // _EPOCHS // _BATCHES + 1
