"""Headwater turns an application's writes into live, correct, derived data."""

from headwater.errors import HeadwaterError
from headwater.log import Consumer, Log, Position, Producer, Topic
from headwater.log.open import open
from headwater.operators import joins
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
    "dedup",
    "joins",
    "latest",
    "open",
    "scan",
]
