"""``headwater work``: a function called with each message of a queue.

The worker runs in a thread of its own; this one hears Ctrl-C and SIGTERM. Invariant: however it ends, what
was begun is finished first, within its time, unless Ctrl-C comes a second time.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click

import headwater
from headwater import Log, Queue, QueueSettings, QueueStatus, metrics
from headwater.api.background import Background
from headwater.api.queues import load_handler, queue_metrics
from headwater.cli.commands.queues.queue import alert_options, group_option
from headwater.cli.failure import say
from headwater.cli.options import with_log
from headwater.errors import HeadwaterError
from headwater.queue import QueueAlert, Worker, WorkerSettings, WorkerStatus

SECOND = 1.0
"""How often figures are read."""


@click.command()
@click.argument("topic")
@click.option("--call", "function", metavar="FILE:FUNCTION", required=True, help="What is called.")
@group_option
@click.option("--concurrency", type=click.IntRange(1, 1000), default=8, show_default=True, metavar="N",
              help="How many messages are worked on at once.")  # fmt: skip
@click.option("--ordered", is_flag=True, help="A key's next message waits for the one before.")
@click.option(
    "--max-deliveries",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="How often a message is delivered before it is dead.  [default: as it was made, or 5]",
)
@click.option("--backoff", metavar="INTERVAL", default="1 second", show_default=True,
              help="How long a message waits that failed; twice as long each further time.")  # fmt: skip
@click.option("--stop-after", metavar="INTERVAL", default="30 seconds", show_default=True,
              help="How long what was begun is waited for at the end.")  # fmt: skip
@click.option(
    "--until-empty",
    is_flag=True,
    help="End when nothing is left to be received; with exit code 1 if any failed that is not done.",
)
@click.option("--metrics-port", "port", type=click.IntRange(0, 65535), metavar="N",
              help="Serve metrics to Prometheus at http://127.0.0.1:N/metrics.")  # fmt: skip
@alert_options
@with_log()
def work(log: Log, topic: str, function: str, group: str, **how: Any) -> None:
    """Call a function with each message of the queue over TOPIC, until Ctrl-C.

    The function gets a message with value, key, headers and deliveries; it may be async. When it returns,
    the message is acknowledged; what it raises gives the message back, to be tried again later, and after
    the last time the message is a dead letter (`headwater queue dead`). Ctrl-C and SIGTERM receive no more
    and wait for what was begun; a second Ctrl-C does not wait.

    \b
    Examples:
      headwater work emails --call mail.py:send --concurrency 8
      headwater work emails --call mail.py:send --group mailers --ordered
    """
    handler = load_handler(function)
    settings = WorkerSettings(how["concurrency"], how["backoff"], stop_after=how["stop_after"])
    alert = QueueAlert(how["alert_depth"], how["alert_age"])
    with log.queue(topic, group, settings=_settings(how)) as queue, _endpoint(how["port"]) as endpoint:
        if endpoint is not None:
            click.echo(f"metrics at {endpoint.url}", err=True)
        worker = Worker(queue, handler, settings)
        status = _watch(worker, queue, (endpoint, alert), how["until_empty"])
        left = how["until_empty"] and _tell_left(queue, status)
    if how["until_empty"] and (status.dead or left):
        raise click.exceptions.Exit(1)


def _tell_left(queue: Queue, status: WorkerStatus) -> bool:
    """Say how many messages wait that were given back; tell whether there are any."""
    left = queue.status().delayed if status.retried else 0
    if left:
        say("worker", f"{left} that failed wait to be delivered again")
    return bool(left)


def _settings(how: dict[str, Any]) -> QueueSettings | None:
    """Return what is asked for; None leaves the queue as it was made."""
    if not how["ordered"] and how["max_deliveries"] is None:
        return None
    chosen = QueueSettings(ordered=how["ordered"])
    most = how["max_deliveries"]
    return chosen if most is None else QueueSettings(ordered=how["ordered"], max_deliveries=most)


def _endpoint(port: int | None) -> AbstractContextManager[metrics.Endpoint | None]:
    return nullcontext() if port is None else headwater.metrics.Endpoint("queue", port)


def _watch(
    worker: Worker, queue: Queue, figures: tuple[metrics.Endpoint | None, QueueAlert], until_empty: bool
) -> WorkerStatus:
    """Wait until the work ends; Ctrl-C and SIGTERM end it in good order."""
    running = Background(lambda: worker.run(until_empty=until_empty))
    try:
        _follow(running, queue, figures, worker)
        return running.result()
    except BaseException:
        worker.stop()
        while not running.ended(SECOND):
            pass
        raise
    finally:
        told = worker.status()
        say("worker", f"{told.done} done, {told.retried} given back, {told.dead} dead")
        if told.last_error is not None:
            say("last error", told.last_error)


def _follow(
    running: Background[WorkerStatus],
    queue: Queue,
    figures: tuple[metrics.Endpoint | None, QueueAlert],
    worker: Worker,
) -> None:
    endpoint, alert = figures
    told = list[str]()
    while not running.ended(SECOND):
        if endpoint is None and alert == QueueAlert():
            continue
        status = _status(queue)
        if status is None:
            continue
        if endpoint is not None:
            endpoint.publish([], queue_metrics(status, worker.status(), alert))
        reasons = alert.reasons(status)
        for reason in reasons if not told else ():
            say("alert", reason)  # once, until it is over
        told = reasons


def _status(queue: Queue) -> QueueStatus | None:
    try:
        return queue.status()
    except HeadwaterError:  # the worker meets it too, and knows what to do
        time.sleep(SECOND)
        return None
