"""Topics for plain Spark: ``format("headwater")``, to read and to write, in streams and in batches.

For who wants Spark's own operators over the same topics; a pipeline needs none of it. Invariant: what is
read and written here is what every other reader and producer of the log sees.
"""

from __future__ import annotations

from typing import Any


def register(spark: Any) -> None:
    """Let a ``SparkSession`` read and write topics with ``format("headwater")``.

    Options: ``url`` of the log and ``topic``; to read, ``start`` and ``end`` (of a batch), ``limit`` (rows of
    a micro-batch), ``columns`` and ``meta``. A streaming query writes effectively once: what a crash lets it
    repeat is appended once. A batch is appended once for each ``save()``. See ``docs/spark.md``.
    """
    from headwater.engine.source.data_source import HeadwaterSource

    spark.dataSource.register(HeadwaterSource)
