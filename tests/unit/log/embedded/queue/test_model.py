"""The embedded queue against a simple model, with time by hand and consumers that die.

The model knows of each message what it is: waiting, held, delayed, done or dead. A consumer that dies is a
handle whose files are closed by the kernel: nothing is given back, nothing is said.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headwater import durations
from headwater.errors import Fenced
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.queue import EmbeddedQueue, QueueOpener
from headwater.log.queue import Message
from headwater.log.queue_settings import QueueSettings
from soaking import examples

KEYS = ("a", "b", "c")
LAST = 3
"""The number of the last delivery."""
SECOND = 1_000_000
ROWS = st.tuples(st.sampled_from(KEYS), st.integers(0, 2), st.sampled_from([0, 5]), st.sampled_from([8, 99]))
"""Key, priority, and in how many seconds it is due and dies."""
KINDS = {
    "plain": QueueSettings(max_deliveries=LAST),
    "ordered": QueueSettings(max_deliveries=LAST, ordered=True),
    "priority": QueueSettings(max_deliveries=LAST, priority="p"),
    "delay": QueueSettings(max_deliveries=LAST, delay="due"),
    "all": QueueSettings(max_deliveries=LAST, ordered=True, priority="p", delay="due", time_to_live="dies"),
}


@dataclass
class Known:
    """A message as the model has it."""

    n: int
    key: str
    priority: int
    due: int
    dies: int
    deliveries: int = 0
    until: int | None = None
    """When it can be had again, while it is held or delayed."""
    holder: int | None = None
    fate: str = ""
    """``done`` or ``dead``, if it is that."""
    died: int = 0
    """Its number among those that have died."""
    redriven: bool = False
    handle: Message | None = field(default=None, repr=False)


def crash(queue: EmbeddedQueue) -> None:
    """Let go of what a consumer has open, as the kernel does when its process is killed."""
    queue._lock.release()
    queue._store.close()
    queue._intake.close()
    queue._parts.dead_letters.close()


class QueueMachine(RuleBasedStateMachine):
    """Sends, receives, answers, and lets consumers die, in any order."""

    @initialize(kind=st.sampled_from(sorted(KINDS)), partitions=st.sampled_from([1, 2]))
    def start(self, kind: str, partitions: int) -> None:
        self.settings = KINDS[kind]
        self.root = Path(tempfile.mkdtemp(prefix="headwater-queue-"))
        self.log = EmbeddedLog(self.root, durability="os")
        self.log.create_topic(
            "t",
            "k STRING NOT NULL, n BIGINT, p INT, due TIMESTAMP, dies TIMESTAMP",
            key="k",
            partitions=partitions,
        )
        self.now = durations.now()
        self.known: list[Known] = []
        self.deaths = 0
        self.consumers: dict[int, EmbeddedQueue] = {}

    def teardown(self) -> None:
        if not hasattr(self, "root"):
            return
        try:
            self._finish()
        finally:
            for queue in self.consumers.values():
                queue.close()
            self.log.close()
            shutil.rmtree(self.root)

    # What happens

    @rule(rows=st.lists(ROWS, min_size=1, max_size=4))
    def send(self, rows: list[tuple[str, int, int, int]]) -> None:
        with self.log.producer("t") as producer:
            for key, priority, wait, life in rows:
                due = self.now + wait * SECOND if wait and self.settings.delay else 0
                dies = self.now + (life if self.settings.time_to_live else 1_000_000) * SECOND
                known = Known(len(self.known), key, priority, due, dies)
                times = {"due": durations.instant(due), "dies": durations.instant(dies)}
                producer.send({"k": key, "n": known.n, "p": priority, **times})
                self.known.append(known)

    @rule(who=st.integers(0, 2), limit=st.integers(1, 4))
    def receive(self, who: int, limit: int) -> None:
        self._take(who, limit)

    @rule(data=st.data(), what=st.sampled_from(["ack", "ack", "ack", "nack", "delay", "reject", "extend"]))
    def answer(self, data: st.DataObject, what: str) -> None:
        among = [each for each in self.known if each.handle is not None]
        if not among:
            return
        known = data.draw(st.sampled_from(among))
        assert known.handle is not None
        try:
            self._call(known.handle, what)
        except Fenced:
            assert known.holder is None
        else:
            assert known.holder is not None
            self._answered(known, what)

    @rule(seconds=st.sampled_from([1, 4, 6, 11, 25]))
    def wait(self, seconds: int) -> None:
        self.now += seconds * SECOND

    @rule(who=st.integers(0, 2), politely=st.booleans())
    def leave(self, who: int, politely: bool) -> None:
        queue = self.consumers.pop(who, None)
        if queue is None:
            return
        queue.close() if politely else crash(queue)
        for known in self.known:
            if known.handle is not None and known.handle.queue is queue:
                known.handle = None
            if known.holder == who:
                self._given_back(known)

    @rule(who=st.integers(0, 2))
    def redrive(self, who: int) -> None:
        self._take(who, 1 if self.settings.time_to_live is None else 1000)  # so that all that expired is dead
        dead = [each for each in self.known if each.fate == "dead"]
        assert self._queue(who).redrive() == len(dead)
        for each in dead:
            each.fate, each.deliveries, each.handle, each.redriven = "", 0, None, True

    @invariant()
    def every_message_is_accounted_for(self) -> None:
        if not self.consumers:
            return
        status = next(iter(self.consumers.values())).status()
        assert status.depth + status.dead == len([each for each in self.known if each.fate != "done"])

    # What the model makes of it

    def _take(self, who: int, limit: int) -> list[Message]:
        queue = self._queue(who)
        queue._checked = -1e9  # it looks after others now
        self._revive()
        deliverable = self._deliverable()
        messages = queue.receive(limit, visible_after="10 seconds", timeout=0)
        assert len(messages) == min(limit, len(deliverable))
        for message in messages:
            known = self.known[message.value["n"]]
            assert known in deliverable
            known.deliveries += 1
            assert message.deliveries == known.deliveries
            known.until, known.holder, known.handle = self.now + 10 * SECOND, who, message
        if self.settings.priority and messages:
            left = [each.priority for each in deliverable if each.holder is None]
            assert min(self.known[each.value["n"]].priority for each in messages) >= max(left, default=0)
        return messages

    def _queue(self, who: int) -> EmbeddedQueue:
        if who not in self.consumers:
            opener, topic = QueueOpener(self.log, self.log._storage, lambda: self.now), self.log.topic("t")
            start = dict.fromkeys(range(topic.partitions), 0)
            self.consumers[who] = opener.open(topic, "g", self.settings, lambda: start)
        return self.consumers[who]

    def _call(self, message: Message, what: str) -> None:
        calls: dict[str, Any] = {
            "ack": message.ack,
            "nack": message.nack,
            "delay": lambda: message.nack(delay="5 seconds"),
            "reject": lambda: message.reject("no"),
            "extend": lambda: message.extend("20 seconds"),
        }
        calls[what]()

    def _answered(self, known: Known, what: str) -> None:
        if what == "extend":
            known.until = self.now + 20 * SECOND
            return
        known.holder, known.until = None, None
        if what == "ack":
            known.fate = "done"
        elif what == "reject" or known.deliveries >= LAST:
            self._die(known)
        elif what == "delay":
            known.until = self.now + 5 * SECOND

    def _revive(self) -> None:
        """Let what was held or delayed until now be had again, or be dead."""
        for each in self.known:
            if each.until is not None and each.until <= self.now:
                if each.holder is not None:
                    self._given_back(each)
                each.until = None

    def _given_back(self, known: Known) -> None:
        known.holder, known.until = None, None
        if known.deliveries >= LAST:
            self._die(known)

    def _die(self, known: Known) -> None:
        self.deaths += 1
        known.fate, known.died = "dead", self.deaths

    def _deliverable(self) -> list[Known]:
        """Return what can be had now; what would be had, and has expired, is dead."""
        while True:
            open = [each for each in self.known if not each.fate]
            if self.settings.ordered:
                open = list({each.key: each for each in sorted(open, key=_turn, reverse=True)}.values())
            free = [each for each in open if each.holder is None and each.until is None]
            there = [each for each in free if each.due <= self.now]
            expired = [each for each in there if each.dies <= self.now]
            if not expired:
                return there
            for each in expired:
                self._die(each)

    def _finish(self) -> None:
        """Let everything be done in the end: nothing is lost, and nothing is dead twice."""
        self.now += 200 * SECOND
        while not all(each.fate for each in self.known):
            for message in self._take(0, 4):
                message.ack()
                self._answered(self.known[message.value["n"]], "ack")
            self.now += 30 * SECOND
        self._take(0, 1)
        queue = self._queue(0)
        assert sorted(each.value["n"] for each in queue.dead()) == [
            each.n for each in self.known if each.fate == "dead"
        ]
        assert queue.status().depth == 0


def _turn(known: Known) -> tuple[bool, bool, int]:
    """By what the messages of a key are in order: begun, redriven as they died, then as they were sent."""
    return known.deliveries == 0, not known.redriven, known.died if known.redriven else known.n


TestQueue = QueueMachine.TestCase
TestQueue.settings = examples(60, stateful_step_count=40)
