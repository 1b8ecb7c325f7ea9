"""What the log's benchmarks run in a process of its own."""

from __future__ import annotations

import sys
import time

import headwater
from bench import events

COUNT = 5_000
EVERY = 0.001


def read(url: str, topic: str) -> None:
    """Read a whole topic and print the peak of memory in MB."""
    with headwater.open(url) as log:
        count = sum(len(batch) for batch in log.read(topic))
    assert count
    # Not ru_maxrss: that starts with what the parent process had when it forked.
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(int(peak.split()[1]) / 1024)


def wake_headwater(url: str, topic: str) -> None:
    seen = []
    with headwater.open(url) as log:
        follower = log.read(topic, follow=True, start="earliest")
        print("ready", flush=True)
        while len(seen) < COUNT:
            batch = next(follower)
            now = time.monotonic()
            seen += [now - amount for amount in batch.column("amount").to_pylist()]
    print("\n".join(map(str, seen)))


def pace_headwater(url: str, topic: str) -> None:
    with headwater.open(url) as log, log.producer(topic) as producer:
        for number in _paced():
            user = f"user-{number % 100}"
            producer.send({"user": user, "url": "/", "amount": time.monotonic(), "at": events.FIRST})
            producer.flush()


def wake_kafka(servers: str, topic: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "wake", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, p, 0) for p in range(4)])
    consumer.poll(1)
    print("ready", flush=True)
    seen: list[float] = []
    while len(seen) < COUNT:
        message = consumer.poll(1)
        if message is not None and not message.error():
            seen.append(time.monotonic() - float(message.value()))
    print("\n".join(map(str, seen)))
    consumer.close()


def pace_kafka(servers: str, topic: str) -> None:
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": servers, "acks": "all", "enable.idempotence": True, "linger.ms": 0}
    producer = Producer(settings)
    for number in _paced():
        producer.produce(topic, str(time.monotonic()).encode(), f"user-{number % 100}".encode())
        producer.poll(0)
    producer.flush()


def _paced() -> range:  # an iterator in time: one number a millisecond
    start = time.monotonic()

    def numbers():  # type: ignore[no-untyped-def]
        for number in range(COUNT):
            wait = start + number * EVERY - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            yield number

    return numbers()  # type: ignore[return-value]


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    {
        "read": read,
        "wake-headwater": wake_headwater,
        "pace-headwater": pace_headwater,
        "wake-kafka": wake_kafka,
        "pace-kafka": pace_kafka,
    }[task](*arguments)
