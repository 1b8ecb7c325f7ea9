"""Sends what waits in an outbox, beside the pipeline: several messages at once, of each ordering key one.

It runs in the process of the runner, from its begin to its end; what waits then waits for the next.
Invariant: a delivery is sent again until it has arrived or is set aside, and the next of its ordering
key not before that.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from headwater.backoff import Backoff
from headwater.closing import Closing
from headwater.errors import Fenced, HeadwaterError
from headwater.sinks.delivery.delivery import Outcome, OutgoingDelivery, Transport
from headwater.sinks.delivery.endpoint_health import EndpointHealth
from headwater.sinks.delivery.fan_out import fan_out
from headwater.sinks.delivery.queue import DeliveryQueue, DueDeliveries, SettledAttempt
from headwater.sinks.delivery.rate_limit import RateLimiter

BACKOFF = Backoff(1.0, 300.0)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeliveryPolicy:
    """How messages are sent."""

    concurrency: int = 8
    retry_timeout: float = 86_400.0
    """For how many seconds an endpoint, or a message, may fail before it is set aside."""
    backoff: Backoff = BACKOFF
    drain: float = 10.0
    """For how many seconds what is due is still sent when the runner ends."""
    poll: float = 0.5
    """How often, in seconds, it looks for what other processes have changed: a redrive, a rebuild."""


class DeliveryWorker(Closing):
    """Sends the deliveries of one outbox until it is closed, or another runner takes over."""

    def __init__(
        self,
        queue: DeliveryQueue,
        transport: Transport,
        policy: DeliveryPolicy,
        limiter: RateLimiter | None = None,
    ):
        self._queue, self._transport, self._policy, self._limiter = queue, transport, policy, limiter
        self._health = EndpointHealth(policy.backoff, policy.retry_timeout)
        self._under_way: dict[int, OutgoingDelivery] = {}
        self._ended: list[tuple[OutgoingDelivery, Outcome]] = []
        self._changed = threading.Condition()
        self._woken, self._closing_until = True, float("inf")
        self._began, self._was_dead = time.time(), False
        self._thread = threading.Thread(target=self._run, name="headwater-deliveries", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look at once for what has been added."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def close(self) -> None:
        """Send what is due now, for a while, and stop."""
        self._closing_until = time.time() + self._policy.drain
        self.wake()
        self._thread.join()

    def _run(self) -> None:
        with ThreadPoolExecutor(self._policy.concurrency, "headwater-delivery") as pool:
            while self._goes_on(pool):
                pass
        with suppress(HeadwaterError):  # what has ended last; where it is not noted it is sent again
            self._settle()
        self._transport.close()

    def _goes_on(self, pool: ThreadPoolExecutor) -> bool:
        """Do a round; tell whether there is to be another."""
        try:
            return self._round(pool)
        except Fenced:
            return False
        except HeadwaterError as error:  # a disk that is full, a file that is busy: it comes again
            _log.warning("%s: deliveries wait", error.message)
        except Exception:  # nobody else would notice that nothing is sent any more
            _log.exception("deliveries wait")
        time.sleep(self._policy.poll)
        return time.time() < self._closing_until

    def _round(self, pool: ThreadPoolExecutor) -> bool:
        """Do what there is to do now; return whether to go on."""
        self._settle()
        now = time.time()
        if now >= self._closing_until:
            return False
        due = self._due(now)
        for delivery in due.deliveries:
            self._under_way[delivery.seq] = delivery
            pool.submit(self._transport.send, delivery).add_done_callback(self._ending(delivery))
        is_idle = not self._under_way and not due.deliveries
        if is_idle and self._closing_until < float("inf"):
            return False
        self._wait(self._seconds_to_wait(due, now))
        return True

    def _due(self, now: float) -> DueDeliveries:
        asked_again = self._prepare(now)
        room = self._health.room(now, self._policy.concurrency, len(self._under_way))
        due = self._queue.due(now, room, frozenset(self._under_way))
        if self._was_dead and not due.is_dead:  # it was redriven
            self._health.reset()
        self._was_dead = due.is_dead
        times = [each for each in (due.next_due, asked_again) if each is not None]
        return DueDeliveries(due.deliveries, min(times, default=None), due.is_dead)

    def _prepare(self, now: float) -> float | None:
        """Let messages go that are held, and give each recipient one; return when to ask again."""
        recipients = self._transport.recipients()
        if self._limiter is None and recipients is None:
            return None
        with self._queue.outbox.transaction() as db:
            again = self._limiter.release_due(db, now) if self._limiter is not None else None
            if recipients is not None:
                fan_out(db, recipients)
        return again

    def _seconds_to_wait(self, due: DueDeliveries, now: float) -> float:
        quiet = self._health.quiet_until
        times = [each for each in (due.next_due, quiet if quiet > now else None) if each is not None]
        return max(0.0, min(self._policy.poll, min(times, default=now + self._policy.poll) - now))

    def _wait(self, seconds: float) -> None:
        with self._changed:
            if not self._woken:
                self._changed.wait(seconds)
            self._woken = False

    def _ending(self, delivery: OutgoingDelivery) -> Callable[[Future[Outcome]], None]:
        def ended(attempt: Future[Outcome]) -> None:
            error = attempt.exception()
            outcome = attempt.result() if error is None else Outcome("retry", f"{type(error).__name__}")
            with self._changed:
                self._ended.append((delivery, outcome))
                self._woken = True
                self._changed.notify()

        return ended

    def _settle(self) -> None:
        with self._changed:
            ended = list(self._ended)
        if not ended:
            return
        now = time.time()
        settled = [self._settled(delivery, outcome, now) for delivery, outcome in ended]
        self._queue.settle(settled)
        with self._changed:
            del self._ended[: len(ended)]
        for delivery, _ in ended:
            del self._under_way[delivery.seq]
        self._judge(ended, now)

    def _settled(self, delivery: OutgoingDelivery, outcome: Outcome, now: float) -> SettledAttempt:
        """Return what follows from an attempt."""
        if outcome.result == "delivered" or outcome.result == "refused":
            return SettledAttempt(delivery, outcome)
        attempts = delivery.attempts + 1
        wait = max(self._policy.backoff.seconds(attempts), outcome.after or 0.0)
        since = max(self._began, delivery.failed_since or now)  # while nobody has tried, nothing has failed
        if (
            outcome.result == "retry"
            and now - since >= self._policy.retry_timeout
            and not self._health.is_dead(now)
        ):
            return SettledAttempt(delivery, Outcome("refused", outcome.reason))
        return SettledAttempt(delivery, outcome, now + wait)

    def _judge(self, ended: list[tuple[OutgoingDelivery, Outcome]], now: float) -> None:
        """Note how the endpoint is, and set it aside if it is gone or stays dead."""
        for _, outcome in ended:
            if outcome.result in ("delivered", "refused"):  # it answers
                self._health.delivered()
            else:
                self._health.failed(now, outcome.after)
        gone = [outcome.reason for _, outcome in ended if outcome.result == "gone"]
        if gone or self._health.is_dead(now):
            self._queue.set_aside_endpoint(gone[0] if gone else ended[-1][1].reason)
