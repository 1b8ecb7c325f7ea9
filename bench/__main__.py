"""``make bench``: every benchmark, one after the other."""

from bench import bad_rows, engine, filters, freshness, log, operators, timeline, views

log.main()
engine.main()
operators.main()
timeline.main()
views.main()
freshness.main()
filters.main()
bad_rows.main()
