"""Kafka's errors in the log's own words: which of them pass, and that none carries a secret."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from headwater.errors import (
    DamagedLog,
    Fenced,
    HeadwaterError,
    LogUnavailable,
    RecordTooLarge,
    TopicExists,
    UnknownTopic,
    UsageError,
    is_transient,
)
from headwater.log.kafka import failures
from headwater.log.kafka.config import Config

CONFIG = Config("kafka://127.0.0.1:9092", {"sasl.password": "hush-4711"})


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        (KafkaError._ALL_BROKERS_DOWN, True),
        (KafkaError._TIMED_OUT, True),
        (KafkaError.NOT_ENOUGH_REPLICAS, True),
        (KafkaError._AUTHENTICATION, False),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, False),
        (KafkaError.UNSUPPORTED_VERSION, False),
    ],
)
def test_a_cluster_is_waited_for_unless_it_says_no(code: int, waits: bool) -> None:
    error = failures.translated(KafkaError(code), CONFIG, "read")
    assert isinstance(error, LogUnavailable)
    assert is_transient(error) == waits


@pytest.mark.parametrize(
    ("answer", "waits", "hint"),
    [
        ('{"error": "invalid_client"}', False, "client.secret"),
        ('{"error":"unauthorized_client","error_description":"Invalid client"}', False, "client.id"),
        ("Must supply an unexpired token: now=2ms, exp=1ms", False, "clock"),
        ("Failed to connect to 127.0.0.1:9 after 0 ms: Could not connect to server", True, "endpoint.url"),
        ("Could not resolve host: nowhere.invalid", True, "endpoint.url"),
    ],
)  # fmt: skip
def test_who_gives_tokens_is_waited_for_unless_it_says_no(answer: str, waits: bool, hint: str) -> None:
    said = KafkaError(KafkaError._AUTHENTICATION, f"Failed to acquire SASL OAUTHBEARER token: {answer}")
    error = failures.translated(said, CONFIG, "read")
    assert is_transient(error) == waits
    assert hint in str(error.hint)


@pytest.mark.parametrize(
    ("mechanism", "hint"), [("OAUTHBEARER", "sasl.oauthbearer"), ("PLAIN", "sasl.password")]
)
def test_who_is_denied_is_told_which_options_say_who_one_is(mechanism: str, hint: str) -> None:
    config = Config("kafka://127.0.0.1:9092", {"sasl.mechanism": mechanism})
    error = failures.translated(KafkaError(KafkaError._AUTHENTICATION), config, "read")
    assert hint in str(error.hint)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._FENCED, Fenced),
        (KafkaError.ILLEGAL_GENERATION, Fenced),
        (KafkaError._UNKNOWN_TOPIC, UnknownTopic),
        (KafkaError.TOPIC_ALREADY_EXISTS, TopicExists),
        (KafkaError.MSG_SIZE_TOO_LARGE, RecordTooLarge),
        (KafkaError._BAD_MSG, DamagedLog),
        (KafkaError.INVALID_CONFIG, UsageError),
    ],
)
def test_what_a_caller_can_act_on_has_a_type_of_its_own(code: int, kind: type[HeadwaterError]) -> None:
    assert type(failures.translated(KafkaError(code), CONFIG, "read")) is kind


def test_no_exception_of_the_client_leaves_and_none_tells_a_secret() -> None:
    said = KafkaError(KafkaError._TRANSPORT, "connected as hush-4711")
    with (
        pytest.raises(LogUnavailable, match="cannot read: Kafka at") as told,
        failures.translating_errors(CONFIG, "read"),
    ):
        raise KafkaException(said)
    assert told.value.detail == "connected as ***"


def test_an_option_that_is_refused_is_named_without_its_value() -> None:
    said = KafkaError(KafkaError._INVALID_ARG, 'No such configuration property: "sasl.passwort" hush-4711')
    error = failures.bad_option(KafkaException(said), CONFIG)
    assert error.message == 'invalid Kafka option "sasl.passwort"'
    assert "hush-4711" not in str(error)
