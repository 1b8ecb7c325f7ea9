"""Whole transactions: which of those that were captured have all of their changes in the log, and reading so.

A topic has a record for each, with the ends of the captured topics up to which there are whole ones alone.
"""
