"""Verify: a node computed anew as a batch, and compared with what is stored."""
