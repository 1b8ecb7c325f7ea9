"""Headwater turns an application's writes into live, correct, derived data."""

from headwater import clock
from headwater.errors import HeadwaterError
from headwater.log import Consumer, Log, Position, Producer, Topic
from headwater.log.open import open
from headwater.operators import agg, joins, tables, windows
from headwater.operators.doors import dedup, latest, scan
from headwater.pipeline import Pipeline

__all__ = [
    "Consumer",
    "HeadwaterError",
    "Log",
    "Pipeline",
    "Position",
    "Producer",
    "Topic",
    "agg",
    "clock",
    "dedup",
    "joins",
    "latest",
    "open",
    "scan",
    "tables",
    "windows",
]
