"""What our code does once in each of Spark's Python workers.

After every task a worker that is kept for the next one collects garbage, which walks every object
that its imports have made: 36 ms a task where reading a small micro-batch takes 4. What is there
when our code first runs stays for the worker's life, so it need not be walked again.

Invariant: nothing that a task computes depends on it.
"""

from __future__ import annotations

import gc
from functools import cache


@cache
def freeze() -> None:
    """Leave out of garbage collection what this process has loaded so far; the first call counts."""
    gc.collect()
    gc.freeze()
