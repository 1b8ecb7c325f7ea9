"""A broker that lets nobody in without a proof, a listener for each kind of it, and what its clients need.

Invariant: every secret of these tests is in ``SECRETS``, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import kafka_certificates
from kafka_broker import PASSWORD, USER, Broker, running_broker
from kafka_certificates import KEY_PASSWORD, Certificates
from oidc_provider import AUDIENCE, CLIENT, CLIENT_SECRET, ISSUER, Provider, running_provider

SECRETS = (PASSWORD, KEY_PASSWORD, CLIENT_SECRET)
_LISTENERS = {
    "SCRAM": "SASL_PLAINTEXT", "TLS_PLAIN": "SASL_SSL", "OAUTH": "SASL_PLAINTEXT", "MUTUAL": "SSL",
    "EXPIRED": "SSL", "OIDC": "SASL_PLAINTEXT",
}  # fmt: skip
_MODULES = "org.apache.kafka.common.security"


@dataclass(frozen=True)
class SecureBroker:
    """A broker, and the options with which each of its listeners is reached."""

    broker: Broker
    certificates: Certificates
    provider: Provider
    """Who gives tokens."""

    def url(self, way: str) -> str:
        listener = "SCRAM" if way.startswith("SCRAM") else way
        return f"kafka://{self.broker.listeners[listener]}"

    def options(self, way: str) -> dict[str, str]:
        """Return what a client needs for one of ``WAYS``."""
        made = self.certificates
        person = {"sasl.username": USER, "sasl.password": PASSWORD}
        trust = {"ssl.ca.location": str(made.ca)}
        if way.startswith("SCRAM"):
            return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": way, **person}
        return {
            "TLS_PLAIN": {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", **person, **trust},
            "OAUTH": {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principal={USER}",
            },
            "OIDC": {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": CLIENT,
                "sasl.oauthbearer.client.secret": CLIENT_SECRET,
                "sasl.oauthbearer.token.endpoint.url": f"{self.provider.url}/token",
            },
            "MUTUAL": {
                "security.protocol": "SSL",
                "ssl.certificate.location": str(made.client),
                "ssl.key.location": str(made.client_key),
                "ssl.key.password": KEY_PASSWORD,
                **trust,
            },
            "EXPIRED": {"security.protocol": "SSL", **trust},
        }[way]


WAYS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "TLS_PLAIN", "OAUTH", "OIDC", "MUTUAL")


@contextmanager
def running_secure_broker(folder: Path) -> Iterator[SecureBroker]:
    """Start it, with certificates in a folder."""
    made = kafka_certificates.make(folder)
    scram = [f"{how}=[name={USER},password={PASSWORD}]" for how in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
    formatting = tuple(each for one in scram for each in ("--add-scram", one))
    with running_provider(folder) as provider:
        java = (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.url}/keys",)
        with running_broker(_settings(made, provider.url), _LISTENERS, formatting, java) as broker:
            yield SecureBroker(broker, made, provider)


def _settings(made: Certificates, provider: str) -> dict[str, str]:
    plain = f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
    scram = f"{_MODULES}.scram.ScramLoginModule required;"
    bearer = f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="b";'
    settings = {
        "scram.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "scram.scram-sha-256.sasl.jaas.config": scram,
        "scram.scram-sha-512.sasl.jaas.config": scram,
        "tls_plain.sasl.enabled.mechanisms": "PLAIN",
        "tls_plain.plain.sasl.jaas.config": plain,
        "oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauth.oauthbearer.sasl.jaas.config": bearer,
        "oidc.sasl.enabled.mechanisms": "OAUTHBEARER",
        "oidc.oauthbearer.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        "oidc.oauthbearer.sasl.server.callback.handler.class": (
            f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "oidc.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": f"{provider}/keys",
        "oidc.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
        "oidc.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
        "oidc.oauthbearer.connections.max.reauth.ms": "3600000",  # so a connection ends with its token
        "oidc.oauthbearer.sasl.oauthbearer.clock.skew.seconds": "1",
        "mutual.ssl.client.auth": "required",
    }
    for name in ("tls_plain", "mutual", "expired"):
        settings[f"{name}.ssl.keystore.type"] = settings[f"{name}.ssl.truststore.type"] = "PEM"
        settings[f"{name}.ssl.keystore.location"] = str(made.expired if name == "expired" else made.broker)
        settings[f"{name}.ssl.truststore.location"] = str(made.ca)
    return {f"listener.name.{name}": value for name, value in settings.items()}
