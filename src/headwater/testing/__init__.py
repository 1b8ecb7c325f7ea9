"""The public test kit: what users and backends need to test what they build on Headwater.

A harness with a clock that is set by hand, fixtures of pytest, and a suite that every sink must pass.
"""
