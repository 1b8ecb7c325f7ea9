"""Event sourcing: commands are decided on what has happened, and what they lead to is a fact.

A ``Decider`` declares one kind of aggregate; opened on a log, it takes commands. Its events are an ordinary
topic: sources of pipelines, and so of views.
"""

from headwater.errors import Rejected
from headwater.sourcing.aggregates import Aggregates
from headwater.sourcing.decider import Decider
from headwater.sourcing.event_feed import PublishedEvent
from headwater.sourcing.history import history
from headwater.sourcing.loading import load_decider
from headwater.sourcing.process_manager import ProcessManager, RefusedStep, RunningProcess, Send
from headwater.sourcing.process_status import ProcessStatus
from headwater.sourcing.reply import HandledReply, RecordedEvent, Reply
from headwater.sourcing.settings import DeciderSettings
from headwater.sourcing.timer import DurableTimer
from headwater.sourcing.timer_worker import TimerWorker
from headwater.sourcing.uniqueness import UniqueClaims, UniqueValues, unique

__all__ = [
    "Aggregates",
    "Decider",
    "DeciderSettings",
    "DurableTimer",
    "HandledReply",
    "ProcessManager",
    "ProcessStatus",
    "PublishedEvent",
    "RecordedEvent",
    "RefusedStep",
    "Rejected",
    "Reply",
    "RunningProcess",
    "Send",
    "TimerWorker",
    "UniqueClaims",
    "UniqueValues",
    "history",
    "load_decider",
    "unique",
]
