"""Rows less those that a stream has judged to be late, which are its history.

Invariant: the other rows keep their order, so that a batch takes them as the stream did.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from headwater.operators.groups import alike


def without(rows: pa.Table, late: pa.Table) -> pa.Table:
    """Return rows less late ones; of equal rows the last go, which came when time had gone on.

    >>> rows = pa.table({"id": [1, 2, 1, 3]})
    >>> without(rows, pa.table({"id": [1]}))["id"].to_pylist()
    [1, 2, 3]
    """
    if not late.num_rows:
        return rows
    numbers = alike(pa.concat_tables([rows, late]))
    own = numbers[: rows.num_rows]
    gone = np.bincount(numbers[rows.num_rows :], minlength=numbers.max() + 1)
    following = pd.Series(own).groupby(own).cumcount(ascending=False).to_numpy()
    return rows.filter(pa.array(following >= gone[own]))
