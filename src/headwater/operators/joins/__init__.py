"""Joins of two inputs of which one at least is a stream."""
