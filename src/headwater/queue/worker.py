"""A worker: calls a function with each message of a queue, several at once, and answers for it.

One thread receives as many messages as there are hands free, so that none waits in a worker; another says of
those that take long that they are still being worked on. Invariant: a message is acknowledged after its call
has returned, and only then; one whose call has failed is given back or is dead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial

from headwater.backoff import Backoff
from headwater.durations import interval
from headwater.errors import Fenced, HeadwaterError, OffsetLost, is_transient
from headwater.log import Message, Queue
from headwater.queue.calling import Handler, MessageCaller
from headwater.queue.hands import DaemonHands
from headwater.queue.worker_settings import WorkerSettings
from headwater.queue.worker_status import WorkerCounts, WorkerStatus

LOOK_SECONDS = 0.5
"""How often a worker that waits for messages looks whether it is to stop."""
_log = logging.getLogger("headwater")


class RejectMessage(Exception):
    """Raised by a worker's function for a message that will never be right: it is dead at once."""


class Worker:
    """Calls a function with each message of a queue.

    - ``queue``: the open queue.
    - ``call``: the function, async or not; it is called with the ``Message``. Returning acknowledges it,
      ``RejectMessage`` makes it a dead letter, any other exception, ``SystemExit`` too, gives it back, to be
      tried again later; the first of each kind is logged.
    - ``settings=None``: ``WorkerSettings``.

    >>> import headwater
    >>> log = headwater.open("memory:")
    >>> _ = log.create_topic("emails", "to STRING")
    >>> with log.producer("emails") as producer:
    ...     producer.send({"to": "ada"})
    >>> with log.queue("emails", "mailers") as queue:
    ...     worker = Worker(queue, lambda message: print(message.value["to"]))
    ...     print(worker.run(until_empty=True).done)
    ada
    1
    """

    def __init__(self, queue: Queue, call: Handler, settings: WorkerSettings | None = None):
        self._queue, self._handler = queue, call
        self._settings = settings or WorkerSettings()
        chosen = self._settings
        self._visible = interval(chosen.visible_after or queue.settings.visible_after)
        first, longest = interval(chosen.backoff), interval(chosen.longest_backoff)
        self._backoff = Backoff(first.total_seconds(), longest.total_seconds())
        self._counts = WorkerCounts()
        self._in_hand: dict[int, Message] = {}
        self._failures = set[type[BaseException]]()
        self._changed = threading.Condition()
        self._stop = threading.Event()

    def status(self) -> WorkerStatus:
        """Return how it is doing, from any thread."""
        return self._counts.status()

    def stop(self) -> None:
        """Receive no more, from any thread; ``run`` returns when what is in hand is done."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()

    def run(self, *, until_empty: bool = False) -> WorkerStatus:
        """Work until it is stopped, or until the log refuses, and return what was done.

        - ``until_empty=False``: True ends when nothing is left that could be received now.

        What was begun and is not done when the time of ``stop_after`` is over stays unacknowledged; closing
        the queue gives it back.
        """
        hands = DaemonHands(self._settings.concurrency)
        with MessageCaller(self._handler) as caller, self._keeping(), hands:
            try:
                self._share_out(hands, caller, until_empty)
            finally:
                self._wait_for_hands()
        return self.status()

    def _share_out(self, hands: DaemonHands, caller: MessageCaller, until_empty: bool) -> None:
        failures = 0
        while not self._stop.is_set():
            free = self._wait_for_free()
            if not free:
                return
            try:
                messages = self._queue.receive(free, visible_after=self._visible, timeout=LOOK_SECONDS)
                failures = 0
            except HeadwaterError as error:
                failures += 1
                self._mind(error, failures)
                continue
            for message in messages:
                self._take(message)
                hands.submit(partial(self._work, caller, message))
            if until_empty and not messages and not self._in_hand:
                return

    def _mind(self, error: HeadwaterError, failures: int) -> None:
        """Go on after what passes by itself, or was told; raise anything else."""
        self._counts.failed(error.message)
        if isinstance(error, OffsetLost):
            _log.error("%s", error)
        elif is_transient(error):
            if failures == 1:
                _log.warning("worker waits: %s", error.message)
            self._stop.wait(self._backoff.seconds(failures))
        else:
            raise error

    def _wait_for_free(self) -> int:
        """Return how many more messages can be worked on, when it is at least one; 0 if it is to stop."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._stop.is_set() or len(self._in_hand) < self._settings.concurrency
            )
            return 0 if self._stop.is_set() else self._settings.concurrency - len(self._in_hand)

    def _wait_for_hands(self) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: not self._in_hand, interval(self._settings.stop_after).total_seconds()
            )
            if self._in_hand:
                _log.warning("%d messages are not done, and will be delivered again", len(self._in_hand))

    # In a thread for each message

    def _work(self, caller: MessageCaller, message: Message) -> None:
        try:
            self._answer(caller, message)
        except Fenced:
            self._counts.add(overtaken=1)
            _log.warning("message %s was given to another before it was done", message.id)
        except Exception as error:  # it stays unacknowledged, and is delivered again
            self._counts.failed(_reason(error))
            _log.error("message %s could not be answered: %s", message.id, error)
        finally:
            self._release(message)

    def _answer(self, caller: MessageCaller, message: Message) -> None:
        try:
            caller(message)
        except RejectMessage as error:
            why = str(error) or "rejected"
            self._counts.failed(why)
            message.reject(why)
            self._counts.add(dead=1)
        except BaseException as error:  # also what would end the thread: the message is not its to keep
            reason = _reason(error)
            self._counts.failed(reason)
            self._tell_once(message, type(error), reason)
            self._give_back(message, reason)
        else:
            message.ack()
            self._counts.add(done=1)

    def _tell_once(self, message: Message, kind: type[BaseException], reason: str) -> None:
        """Log the first failure of each kind: of all others there may be thousands."""
        with self._changed:
            known = kind in self._failures
            self._failures.add(kind)
        if not known:
            most = self._queue.settings.max_deliveries
            _log.warning(
                "message %s failed, delivery %d of %d: %s", message.id, message.deliveries, most, reason
            )

    def _give_back(self, message: Message, reason: str) -> None:
        if message.deliveries >= self._queue.settings.max_deliveries:
            message.nack(reason=reason)
            self._counts.add(dead=1)
            _log.warning("message %s is dead: %s", message.id, reason)
            return
        seconds = self._backoff.seconds(message.deliveries)
        if self._queue.delays:
            message.nack(timedelta(seconds=seconds), reason)
        else:  # it is held meanwhile, but not for so long that it would be given to another
            self._stop.wait(min(seconds, self._visible.total_seconds() / 2))
            message.nack(reason=reason)
        self._counts.add(retried=1)

    # What is in hand

    def _take(self, message: Message) -> None:
        with self._changed:
            self._in_hand[id(message)] = message
        self._counts.add(in_hand=1)

    def _release(self, message: Message) -> None:
        self._counts.add(in_hand=-1)
        with self._changed:
            self._in_hand.pop(id(message), None)
            self._changed.notify_all()

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Say of messages that take long that they are still being worked on."""
        ended = threading.Event()
        thread = threading.Thread(target=self._keep, args=(ended,), name="headwater-keep", daemon=True)
        if self._queue.delays:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            if self._queue.delays:
                thread.join()

    def _keep(self, ended: threading.Event) -> None:
        third = self._visible.total_seconds() / 3
        since: dict[int, float] = {}
        while not ended.wait(third / 2):
            with self._changed:
                there = dict(self._in_hand)
            now = time.monotonic()
            since = {key: since.get(key, now) for key in there}
            for key, message in there.items():
                if now - since[key] >= third:
                    since[key] = now
                    with suppress(HeadwaterError):  # who answers is told what is the matter
                        message.extend(self._visible)


def _reason(error: BaseException) -> str:
    """Return what went wrong, as text that can be printed, also of an exception that cannot tell."""
    try:
        return f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
    except Exception:  # its own text fails: the message is given back all the same
        return type(error).__name__
