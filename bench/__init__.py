"""Benchmarks: each prints a table, beside a peer in the same run, as a ratio."""
