"""``make bench``: every benchmark, one after the other."""

from bench import (
    bad_rows,
    capture,
    capture_sqlite,
    engine,
    filters,
    freshness,
    log,
    operators,
    small_batches,
    timeline,
    views,
)

log.main()
engine.main()
operators.main()
timeline.main()
views.main()
freshness.main()
filters.main()
small_batches.main()
bad_rows.main()
capture_sqlite.main()
capture.main()
