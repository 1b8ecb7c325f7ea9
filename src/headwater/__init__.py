"""Headwater turns an application's writes into live, correct, derived data."""

from headwater.errors import HeadwaterError
from headwater.log import Consumer, Log, Position, Producer, Topic
from headwater.log.open import open

__all__ = ["Consumer", "HeadwaterError", "Log", "Position", "Producer", "Topic", "open"]
