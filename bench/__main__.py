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
    push,
    queues,
    serve,
    small_batches,
    sourcing,
    statsd,
    timeline,
    views,
)

log.main()
engine.main()
operators.main()
timeline.main()
views.main()
push.main()
freshness.main()
filters.main()
small_batches.main()
bad_rows.main()
capture_sqlite.main()
capture.main()
statsd.main()
serve.main()
sourcing.main()
queues.main()
