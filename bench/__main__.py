"""``make bench``: every benchmark, one after the other."""

from bench import engine, freshness, log

log.main()
engine.main()
freshness.main()
