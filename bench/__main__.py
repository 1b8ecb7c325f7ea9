"""``make bench``: every benchmark, one after the other."""

from bench import engine, freshness, log, views

log.main()
engine.main()
views.main()
freshness.main()
