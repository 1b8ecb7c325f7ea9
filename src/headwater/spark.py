"""Topics for plain Spark: ``format("headwater")``, to read and to write, in streams and in batches.

For who wants Spark's own operators over the same topics; a pipeline needs none of it. Invariant: what is
read and written here is what every other reader and producer of the log sees.
"""

from __future__ import annotations

from typing import Any


def register(spark: Any) -> None:
    """Let a ``SparkSession`` read and write topics with ``format("headwater")``.

    - ``spark``: the session; it knows the format from then on.

    Options of ``spark.read``, ``readStream``, ``df.write`` and ``writeStream``: ``url`` of the log and
    ``topic``, which must be there; to read, ``start`` and ``end`` (of a batch; ``"earliest"``,
    ``"latest"``, an offset or a time), ``limit`` (rows of a micro-batch at the most), ``columns``
    (separated by commas) and ``meta``; ``log``, options of the log as JSON.

    Order: that of each partition. Late: Spark's own watermark decides, and drops.
    Restart: a streaming query writes effectively once: what a crash lets it repeat is appended once. A
    batch is appended once for each ``save()``.

    >>> registered = []
    >>> class Session:  # stands for yours: spark = SparkSession.builder.getOrCreate()
    ...     class dataSource:
    ...         register = registered.append
    >>> register(Session)
    >>> registered[0].name()
    'headwater'

    More in ``docs/spark.md``.
    """
    from headwater.engine.source.data_source import HeadwaterSource

    spark.dataSource.register(HeadwaterSource)
