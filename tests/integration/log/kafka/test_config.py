"""Reaching a broker: URLs, options, secrets, and brokers that are not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headwater.errors import HeadwaterError, UsageError
from headwater.log.kafka.config import Config
from headwater.log.open import open as open_log
from kafka_broker import PASSWORD, USER, Broker

SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": USER}


@pytest.mark.kafka
def test_sasl_options_reach_the_broker(broker: Broker, name: str) -> None:
    with open_log(f"kafka://{broker.sasl_servers}", **SASL, **{"sasl.password": PASSWORD}) as log:
        log.create_topic(name, "id BIGINT")
        with log.producer(name) as producer:
            producer.send({"id": 1})
        assert sum(len(batch) for batch in log.read(name)) == 1
        assert PASSWORD not in repr(log) + log.url


@pytest.mark.kafka
def test_options_come_from_the_url_and_a_file(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text(f"# secret\nsasl.username = {USER}\nsasl.password={PASSWORD}\n")
    monkeypatch.setenv("HEADWATER_KAFKA_CONFIG", str(file))
    url = f"kafka://{broker.sasl_servers}?security.protocol=SASL_PLAINTEXT&sasl.mechanism=PLAIN"
    with open_log(url) as log:
        assert log.url == f"kafka://{broker.sasl_servers}"
        assert isinstance(log.topics(), list)


def test_nothing_is_written_on_standard_error() -> None:
    program = "from headwater.log.open import open\ntry: open('kafka://127.0.0.1:1')\nexcept Exception: pass"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("kafka://host:1", {"nonsense": "x"}, 'invalid Kafka option "nonsense"'),
        ("kafka://host:1", {"security.protocol": "x"}, 'invalid Kafka option "security.protocol"'),
        ("kafka://host:1?enable.idempotence=false", {}, '"enable.idempotence" cannot be set'),
        ("kafka://alice:hush@host:1", {}, "takes no user and password"),
        (
            "kafka://host:1?sasl.password=hush",
            {},
            '"sasl.password" is a secret, and does not belong in a URL',
        ),
        ("kafka://host:1?ssl.key.password=hush", {}, "does not belong in a URL"),
        ("kafka://host:1?sasl.oauthbearer.client.secret=hush", {}, "does not belong in a URL"),
        ("kafka://host:1?schema.registry.url=http://ada:hush@host", {}, "does not belong in a URL"),
        ("kafka://host:1?sasl.password=${env:NOT_SET}", {}, "environment variable NOT_SET"),
        ("kafka://host:1?sasl.password=${file:/not/there}", {}, 'file "/not/there"'),
        ("kafka://", {}, "invalid Kafka URL"),
        ("kafka://a b", {}, "invalid Kafka URL"),
    ],
)
def test_wrong_urls_and_options_are_refused(url: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as told:
        open_log(url, **options)
    assert said in str(told.value)
    assert "hush" not in str(told.value)


def test_secrets_stay_out_of_every_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secrets = {"ssl.key.password": "hush-1", "sasl.password": "hush-2", "ssl.key.pem": "hush-3"}
    monkeypatch.setenv("KEYSTORE", "hush-4")
    config = Config("kafka://one,two:9093?ssl.keystore.password=${env:KEYSTORE}", secrets)
    assert config.url == "kafka://one:9092,two:9093"
    assert "hush" not in repr(config) + config.scrubbed("said hush-1 hush-2 hush-3 hush-4")
    with pytest.raises(HeadwaterError) as told:
        open_log("kafka://localhost:1", **{"ssl.key.pem": "hush-3", "security.protocol": "SSL"})
    assert "hush" not in str(told.value)
    monkeypatch.setenv("HEADWATER_KAFKA_CONFIG", str(tmp_path / "absent"))
    with pytest.raises(UsageError, match="HEADWATER_KAFKA_CONFIG"):
        Config("kafka://one", {})


def test_values_may_say_where_they_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hush-1\n")
    monkeypatch.setenv("KEY_PASSWORD", "hush-2")
    config = Config(
        f"kafka://one?sasl.password=${{file:{tmp_path / 'password'}}}&sasl.username=ada",
        {"ssl.key.password": "${env:KEY_PASSWORD}"},
    )
    made = config.admin()
    assert (made["sasl.password"], made["ssl.key.password"]) == ("hush-1", "hush-2")
    assert config.scrubbed("hush-1, hush-2 of ada") == "***, *** of ada"


def test_what_is_no_secret_is_told() -> None:
    told = {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://id",
        "ssl.key.location": "key.pem",
        "ssl.ca.location": "ca.pem",
    }
    text = "oidc and true of https://id with key.pem and ca.pem"
    assert Config("kafka://one", told).scrubbed(text) == text


def test_tls_options_reach_every_client() -> None:
    config = Config("kafka://one?security.protocol=SSL", {"ssl.ca.location": "ca.pem"})
    for made in (config.admin(), config.producer(), config.consumer("g")):
        assert made["security.protocol"] == "SSL"
        assert made["ssl.ca.location"] == "ca.pem"
        assert made["bootstrap.servers"] == "one:9092"


def test_options_of_a_schema_registry_are_kept_apart_and_its_password_is_a_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text("schema.registry.basic.auth.user.info=alice:hush-4711\n")
    monkeypatch.setenv("HEADWATER_KAFKA_CONFIG", str(file))
    config = Config("kafka://host?schema.registry.url=http://registry:8081", {"client.id": "me"})
    assert config.schema_registry == {
        "url": "http://registry:8081",
        "basic.auth.user.info": "alice:hush-4711",
    }
    for client in (config.admin(), config.producer(), config.consumer("g")):
        assert not [name for name in client if name.startswith("schema.registry")]
        assert client["client.id"] == "me"
    assert config.scrubbed("no alice:hush-4711, and no hush-4711") == "no ***, and no ***"
    address = "http://alice:hush-4711@registry:8081"
    with pytest.raises(UsageError, match="does not belong in a URL") as told:
        Config(f"kafka://host?schema.registry.url={address}", {})
    assert "hush" not in str(told.value)
    with pytest.raises(UsageError, match="takes no user and password") as told:
        Config("kafka://host", {"schema.registry.url": address})
    assert "hush" not in str(told.value)
