"""``make bench``: every benchmark, one after the other."""

from bench import engine, log

log.main()
engine.main()
