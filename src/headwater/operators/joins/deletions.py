"""Which of a table's changes are deletions.

Invariant: rows that do not say so are none.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Flags
from headwater.record import DELETED


def deletions(rows: pa.Table) -> Flags:
    """Tell which rows are deletions."""
    if DELETED not in rows.column_names:
        return np.zeros(len(rows), np.bool_)
    flags: Flags = rows.column(DELETED).fill_null(False).to_numpy()
    return flags
