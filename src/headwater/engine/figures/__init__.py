"""Figures for people and monitors: progress, status, metrics, lateness of a topic. No pyspark."""
