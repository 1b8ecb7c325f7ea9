"""Headwater turns an application's writes into live, correct, derived data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater import clock, drawing, errors, ingest, sourcing
    from headwater.api import push
    from headwater.api.captures import (
        BackgroundCapture,
        capture_status,
        capture_statuses,
        capture_tables,
        describe_database,
        drop_capture,
        resnapshot,
    )
    from headwater.api.check import NodeColumns, check
    from headwater.api.dead_letters import DeadLetter, dead_letters, discard, redrive
    from headwater.api.figures.attention import Attention
    from headwater.api.figures.history import history
    from headwater.api.figures.overview import (
        NodeOverview,
        PipelineOverview,
        overview,
    )
    from headwater.api.lateness import LatenessReport, LatenessSetting, lateness
    from headwater.api.preview import SourcePreview, preview
    from headwater.api.rebuild import Rebuilt, rebuild, reset
    from headwater.api.rescale import Rescaled, rescale
    from headwater.api.run import BackgroundRun, RunOptions, run
    from headwater.api.status import status
    from headwater.api.verify import compare, verify, verify_source
    from headwater.api.views import open_views
    from headwater.capture.figures import metrics as capture_metrics
    from headwater.capture.figures.status import CaptureStatus
    from headwater.capture.transactions.whole_transactions import WholeTransactions, read_transactions
    from headwater.capture.worker import CaptureWorker
    from headwater.client.async_client import AsyncClient
    from headwater.client.calls import RowRange, SentEvents
    from headwater.client.client import Client
    from headwater.client.live_events import LiveChange, LiveRecord
    from headwater.engine.figures import metrics
    from headwater.engine.figures.bucket_figures import BucketFigures
    from headwater.engine.figures.history import History
    from headwater.engine.figures.progress import Progress
    from headwater.engine.figures.status import Status
    from headwater.engine.home.accounting import Accounting
    from headwater.engine.home.checkpoint import ClockSkew
    from headwater.engine.proof.verdict import Verdict
    from headwater.errors import HeadwaterError
    from headwater.log import (
        Appended,
        Condition,
        ConditionalProducer,
        Consumer,
        DeadMessage,
        Finding,
        Lag,
        Log,
        Message,
        PartitionInfo,
        Position,
        Producer,
        Queue,
        QueueSettings,
        QueueStatus,
        Start,
        Topic,
        TopicInfo,
        Verification,
    )
    from headwater.log.open import open
    from headwater.operators.aggregates import agg
    from headwater.pipeline import targets
    from headwater.pipeline.loading import load
    from headwater.pipeline.pipeline import Pipeline
    from headwater.serve.opening import open_server
    from headwater.serve.security.tokens import TokenStore
    from headwater.serve.server import Server
    from headwater.serve.settings import ServeSettings
    from headwater.transforms import joins, tables, windows
    from headwater.transforms.rows import dedup, latest, scan
    from headwater.views import Change, View, Views

__all__ = [
    "Accounting",
    "Appended",
    "AsyncClient",
    "Attention",
    "BackgroundCapture",
    "BackgroundRun",
    "BucketFigures",
    "CaptureStatus",
    "CaptureWorker",
    "Change",
    "Client",
    "ClockSkew",
    "Condition",
    "ConditionalProducer",
    "Consumer",
    "DeadLetter",
    "DeadMessage",
    "Finding",
    "HeadwaterError",
    "History",
    "Lag",
    "LatenessReport",
    "LatenessSetting",
    "LiveChange",
    "LiveRecord",
    "Log",
    "Message",
    "NodeColumns",
    "NodeOverview",
    "PartitionInfo",
    "Pipeline",
    "PipelineOverview",
    "Position",
    "Producer",
    "Progress",
    "Queue",
    "QueueSettings",
    "QueueStatus",
    "Rebuilt",
    "Rescaled",
    "RowRange",
    "RunOptions",
    "SentEvents",
    "ServeSettings",
    "Server",
    "SourcePreview",
    "Start",
    "Status",
    "TokenStore",
    "Topic",
    "TopicInfo",
    "Verdict",
    "Verification",
    "View",
    "Views",
    "WholeTransactions",
    "agg",
    "capture_metrics",
    "capture_status",
    "capture_statuses",
    "capture_tables",
    "check",
    "clock",
    "compare",
    "dead_letters",
    "dedup",
    "describe_database",
    "discard",
    "drawing",
    "drop_capture",
    "errors",
    "history",
    "ingest",
    "joins",
    "lateness",
    "latest",
    "load",
    "metrics",
    "open",
    "open_server",
    "open_views",
    "overview",
    "preview",
    "push",
    "read_transactions",
    "rebuild",
    "redrive",
    "rescale",
    "reset",
    "resnapshot",
    "run",
    "scan",
    "sourcing",
    "status",
    "tables",
    "targets",
    "verify",
    "verify_source",
    "windows",
]

_MODULES = {
    "agg": "headwater.operators.aggregates.agg",
    "capture_metrics": "headwater.capture.figures.metrics",
    "clock": "headwater.clock",
    "drawing": "headwater.drawing",
    "errors": "headwater.errors",
    "ingest": "headwater.ingest",
    "joins": "headwater.transforms.joins",
    "metrics": "headwater.engine.figures.metrics",
    "push": "headwater.api.push",
    "sourcing": "headwater.sourcing",
    "tables": "headwater.transforms.tables",
    "targets": "headwater.pipeline.targets",
    "windows": "headwater.transforms.windows",
}
_NAMES_BY_MODULE = {
    "headwater.api.figures.attention": ("Attention",),
    "headwater.api.captures": (
        "BackgroundCapture",
        "capture_status",
        "capture_statuses",
        "capture_tables",
        "describe_database",
        "drop_capture",
        "resnapshot",
    ),
    "headwater.api.check": ("NodeColumns", "check"),
    "headwater.api.dead_letters": ("DeadLetter", "dead_letters", "discard", "redrive"),
    "headwater.api.figures.history": ("history",),
    "headwater.api.lateness": ("LatenessReport", "LatenessSetting", "lateness"),
    "headwater.api.figures.overview": ("NodeOverview", "PipelineOverview", "overview"),
    "headwater.api.preview": ("SourcePreview", "preview"),
    "headwater.api.rebuild": ("Rebuilt", "rebuild", "reset"),
    "headwater.api.rescale": ("Rescaled", "rescale"),
    "headwater.api.run": ("BackgroundRun", "RunOptions", "run"),
    "headwater.api.status": ("status",),
    "headwater.api.verify": ("compare", "verify", "verify_source"),
    "headwater.api.views": ("open_views",),
    "headwater.capture.figures.status": ("CaptureStatus",),
    "headwater.client.async_client": ("AsyncClient",),
    "headwater.client.calls": ("RowRange", "SentEvents"),
    "headwater.client.client": ("Client",),
    "headwater.client.live_events": ("LiveChange", "LiveRecord"),
    "headwater.capture.worker": ("CaptureWorker",),
    "headwater.capture.transactions.whole_transactions": ("WholeTransactions", "read_transactions"),
    "headwater.engine.figures.history": ("History",),
    "headwater.engine.figures.bucket_figures": ("BucketFigures",),
    "headwater.engine.figures.progress": ("Progress",),
    "headwater.engine.figures.status": ("Status",),
    "headwater.engine.home.accounting": ("Accounting",),
    "headwater.engine.home.checkpoint": ("ClockSkew",),
    "headwater.engine.proof.verdict": ("Verdict",),
    "headwater.errors": ("HeadwaterError",),
    "headwater.log": (
        *("Appended", "Condition", "ConditionalProducer", "Consumer", "Finding", "Lag", "Log"),
        *("PartitionInfo", "Position", "Producer", "Start", "Topic", "TopicInfo", "Verification"),
        *("DeadMessage", "Message", "Queue", "QueueSettings", "QueueStatus"),
    ),
    "headwater.log.open": ("open",),
    "headwater.pipeline.loading": ("load",),
    "headwater.pipeline.pipeline": ("Pipeline",),
    "headwater.serve.opening": ("open_server",),
    "headwater.serve.security.tokens": ("TokenStore",),
    "headwater.serve.server": ("Server",),
    "headwater.serve.settings": ("ServeSettings",),
    "headwater.transforms.rows": ("dedup", "latest", "scan"),
    "headwater.views": ("Change", "View", "Views"),
}
"""Where each name is. It is looked up when it is first used: each process of Spark's that reads a log
starts by importing this package, and needs few of them."""


def __getattr__(name: str) -> Any:
    value = _load(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def _load(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    for module, names in _NAMES_BY_MODULE.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f'module "headwater" has no attribute "{name}"')
