"""Kafka's errors in the log's own words.

Invariant: no exception of confluent-kafka leaves the package, and none carries a secret.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from headwater.errors import (
    DamagedLog,
    Fenced,
    HeadwaterError,
    LogRefused,
    LogUnavailable,
    RecordTooLarge,
    TopicExists,
    UnknownTopic,
    UsageError,
)
from headwater.log.kafka.config import Config

FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.FENCED_INSTANCE_ID,
}
LOST_MEMBER = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError.STALE_MEMBER_EPOCH,
}
UNKNOWN = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_ID,
}
PROBE_SECONDS = 2.0
LOST_OFFSET = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}
_DENIED = {
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token"
_TOKEN_REFUSED = re.compile(
    r"(invalid|unauthorized|unsupported)_[a-z]+|access_denied|unexpired token|\(40[013]\)"
)
"""What a server of tokens will say again: an error of OAuth 2, or a token that is over already."""
TRANSIENT = {
    KafkaError._ALL_BROKERS_DOWN, KafkaError._DESTROY, KafkaError._MSG_TIMED_OUT, KafkaError._PURGE_INFLIGHT,
    KafkaError._PURGE_QUEUE, KafkaError._QUEUE_FULL, KafkaError._RESOLVE, KafkaError._RETRY,
    KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError._TRANSPORT, KafkaError._WAIT_COORD,
    KafkaError.BROKER_NOT_AVAILABLE, KafkaError.CONCURRENT_TRANSACTIONS,
    KafkaError._NOENT, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_CONTROLLER, KafkaError.NOT_COORDINATOR, KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.REPLICA_NOT_AVAILABLE, KafkaError.REQUEST_TIMED_OUT,
    KafkaError.THROTTLING_QUOTA_EXCEEDED, KafkaError.UNSTABLE_OFFSET_COMMIT,
}  # fmt: skip
"""What a cluster says for a while: it is away, it elects, it has too few replicas or too much to do."""


def translated(error: KafkaError, config: Config, doing: str) -> HeadwaterError:
    """Return the error that says what failed while ``doing`` something."""
    code, detail = error.code(), config.scrubbed(error.str())
    if code in FENCED:
        return Fenced("producer has been fenced", detail=detail)
    if code in LOST_MEMBER:
        return Fenced("consumer is no longer a member of its group", detail=detail)
    if code in UNKNOWN:
        return UnknownTopic(f"cannot {doing}: the topic is not there", detail=detail)
    if code == KafkaError.TOPIC_ALREADY_EXISTS:
        return TopicExists(f"cannot {doing}: the topic exists", detail=detail)
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        return RecordTooLarge(f"cannot {doing}: a record is too large", detail=detail)
    if code == KafkaError._BAD_MSG:
        hint = "run `headwater log verify`, and restore the partition from a replica"
        return DamagedLog(f"cannot {doing}: stored bytes are damaged", detail=detail, hint=hint, resume=None)
    if is_tls(error):
        return LogRefused(f"cannot {doing}: TLS with Kafka fails", detail=detail, hint=tls_hint(detail))
    if _NO_TOKEN in detail:
        return _without_token(detail, doing)
    if code in _DENIED:
        hint = f"check {config.proof} and the access rules"
        return LogRefused(f"cannot {doing}: Kafka denies access", detail=detail, hint=hint)
    if code in (KafkaError._INVALID_ARG, KafkaError.INVALID_CONFIG, KafkaError.POLICY_VIOLATION):
        return UsageError(f"cannot {doing}: Kafka refuses the settings", detail=detail)
    hint = "check that the broker runs and can be reached"
    kind = LogUnavailable if code in TRANSIENT or error.txn_requires_abort() else LogRefused
    return kind(f"cannot {doing}: Kafka at {config.servers} failed", detail=detail, hint=hint)


def _without_token(detail: str, doing: str) -> HeadwaterError:
    """Return the error of a client that got no token: for good, or because who gives it is away."""
    if _TOKEN_REFUSED.search(detail):
        hint = 'check "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret" and the machine\'s clock'
        return LogRefused(f"cannot {doing}: a token for Kafka is refused", detail=detail, hint=hint)
    hint = 'check that the server at "sasl.oauthbearer.token.endpoint.url" runs and can be reached'
    return LogUnavailable(f"cannot {doing}: no token for Kafka is to be had", detail=detail, hint=hint)


def is_denial(error: KafkaError) -> bool:
    """Tell whether a broker, or TLS with it, says no when a connection is made."""
    return error.code() == KafkaError._AUTHENTICATION or is_tls(error)


def is_tls(error: KafkaError) -> bool:
    """Tell whether TLS has failed; what the other side says of it comes as a connection that has ended."""
    return error.code() == KafkaError._SSL or "SSL" in error.str()


def tls_hint(told: str) -> str:
    """Return what to do about TLS that has failed in these words."""
    if "expired" in told:
        return "renew the broker's certificate"
    if "verify failed" in told:
        return 'check "ssl.ca.location": it names the certificate of who has signed the broker\'s'
    if "alert" in told:
        return 'the broker asks for your certificate: check "ssl.certificate.location" and "ssl.key.location"'
    return 'check "security.protocol": does this listener speak TLS?'


def certificate_problem(servers: str, ca: str | None) -> str | None:
    """Return why the certificate of a broker is not believed, which its own client does not tell, or None."""
    host, _, port = servers.split(",")[0].rpartition(":")
    try:
        context = ssl.create_default_context(cafile=ca)
        with socket.create_connection((host.strip("[]"), int(port)), PROBE_SECONDS) as plain:
            context.wrap_socket(plain, server_hostname=host.strip("[]")).close()
    except ssl.SSLCertVerificationError as error:
        return str(error.verify_message)
    except (OSError, ValueError):
        return None
    return None


@contextmanager
def translating_errors(config: Config, doing: str) -> Iterator[None]:
    """Translate what confluent-kafka raises inside the block."""
    try:
        yield
    except KafkaException as error:
        raise translated(error.args[0], config, doing) from None


def bad_option(error: KafkaException, config: Config) -> UsageError:
    """Return the error for an option that librdkafka refuses, without its value."""
    text = error.args[0].str()
    name = re.search(r'property:? "?([a-z0-9._]+)"?', text) or re.search(r"(ssl\.[a-z.]+) failed", text)
    hint = "options are librdkafka's own, see its CONFIGURATION.md"
    if name and name[1].startswith("ssl."):
        locked = ', and "ssl.key.password" is right' if "key" in name[1] else ""
        hint = f"check that the file is there and can be read{locked}"
    return UsageError(
        f'invalid Kafka option "{name[1]}"' if name else "invalid Kafka options",
        detail=config.scrubbed(text),
        hint=hint,
    )
