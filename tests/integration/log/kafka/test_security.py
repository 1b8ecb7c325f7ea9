"""Brokers that want a proof of who one is: given, or told what is wrong with it; and no secret is told."""

from __future__ import annotations

import logging
import time

import pytest

from headwater.errors import HeadwaterError, LogRefused, LogUnavailable, UsageError, is_transient
from headwater.log.open import open as open_log
from kafka_kit import polled, rows
from kafka_security import SECRETS, WAYS, SecureBroker

pytestmark = pytest.mark.kafka
WRONG = "looking-glass-1871"


@pytest.mark.parametrize("way", WAYS)
def test_a_log_behind_a_proof_is_written_read_and_shared(
    secure: SecureBroker, name: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with open_log(secure.url(way), **secure.options(way)) as log:
        log.create_topic(name, "n BIGINT", partitions=2)
        for id in (None, "till"):
            with log.producer(name, id=id) as producer:
                producer.send_batch([{"n": n} for n in range(10)])
        assert sorted(row["n"] for row in rows(log, name)) == sorted([*range(10)] * 2)
        with log.consumer(name, f"g-{name}") as consumer:
            assert len(polled(consumer, 20)) == 20
            consumer.commit()
        assert list(log.appended_ranges(name, 0, 0))
        told = f"{log!r} {log.url} {log.topics()} {log.__dict__} {caplog.text}"
    assert not [secret for secret in SECRETS if secret in told]


@pytest.mark.parametrize(
    ("way", "changes", "said", "hint"),
    [
        ("SCRAM-SHA-256", {"sasl.password": WRONG}, "denies access", "sasl.password"),
        ("SCRAM-SHA-512", {"sasl.username": "bob"}, "denies access", "sasl.username"),
        ("TLS_PLAIN", {"sasl.password": WRONG}, "denies access", "sasl.password"),
        ("TLS_PLAIN", {"ssl.ca.location": "OTHER"}, "TLS with Kafka fails", "ssl.ca.location"),
        ("TLS_PLAIN", {"ssl.ca.location": None}, "TLS with Kafka fails", "ssl.ca.location"),
        ("TLS_PLAIN", {"ssl.ca.location": "/not/there"}, 'Kafka option "ssl.ca.location"', "file is there"),
        ("EXPIRED", {}, "TLS with Kafka fails", "has expired"),
        ("MUTUAL", {"ssl.certificate.location": None, "ssl.key.location": None, "ssl.key.password": None},
         "TLS with Kafka fails", "ssl.certificate.location"),
        ("MUTUAL", {"ssl.key.password": WRONG}, 'Kafka option "ssl.key.location"', "ssl.key.password"),
        ("MUTUAL", {"security.protocol": "PLAINTEXT"}, "cannot reach Kafka", "security.protocol"),
        ("OIDC", {"sasl.oauthbearer.client.secret": WRONG}, "a token for Kafka is refused", "client.secret"),
        ("OIDC", {"sasl.oauthbearer.method": "default", "enable.sasl.oauthbearer.unsecure.jwt": "true",
                  "sasl.oauthbearer.config": "principal=bob"}, "denies access", "sasl.oauthbearer"),
        ("OAUTH", {"security.protocol": "SSL"}, "TLS with Kafka fails", "security.protocol"),
        ("OAUTH", {"sasl.mechanism": "PLAIN", "sasl.username": "bob", "sasl.password": WRONG},
         "denies access", "sasl."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_seconds_with_a_hint(
    secure: SecureBroker, way: str, changes: dict[str, str | None], said: str, hint: str
) -> None:
    changed = {name: str(secure.certificates.other_ca) if v == "OTHER" else v for name, v in changes.items()}
    options = {name: v for name, v in {**secure.options(way), **changed}.items() if v is not None}
    started = time.monotonic()
    with pytest.raises(HeadwaterError) as told:
        open_log(secure.url(way), **options)
    assert time.monotonic() - started < 8
    assert said in told.value.message
    assert hint in str(told.value)
    assert not [secret for secret in (*SECRETS, WRONG) if secret in str(told.value)]
    if "security.protocol" not in changes:
        assert isinstance(told.value, LogRefused | UsageError)
        assert not is_transient(told.value)


@pytest.mark.parametrize("where", ["http://127.0.0.1:9/token", "http://nowhere.invalid/token", "503"])
def test_who_gives_tokens_may_be_away_for_a_while(secure: SecureBroker, where: str) -> None:
    endpoint = {"sasl.oauthbearer.token.endpoint.url": where} if where != "503" else {}
    secure.provider.away = where == "503"
    try:
        with pytest.raises(LogUnavailable) as told:
            open_log(secure.url("OIDC"), **{**secure.options("OIDC"), **endpoint})
    finally:
        secure.provider.away = False
    assert is_transient(told.value)
    if where != "503":  # which the client asks again, and does not tell
        assert "no token for Kafka is to be had" in told.value.message
        assert "sasl.oauthbearer.token.endpoint.url" in str(told.value)
