"""Stateful operators: pure, Arrow in and Arrow out, one bucket of keys at a time, no pyspark."""
