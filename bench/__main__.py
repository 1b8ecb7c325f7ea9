"""``make bench``: every benchmark, one after the other."""

from bench import engine, freshness, log, operators, views

log.main()
engine.main()
operators.main()
views.main()
freshness.main()
