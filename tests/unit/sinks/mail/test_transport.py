"""Mail through a real SMTP server."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes, policy
from pathlib import Path

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from delivery_kit import QUICK, batch, outbox, sink, until
from headwater.sinks.delivery.declaration import DeliveryDeclaration
from headwater.sinks.delivery.delivery import OutgoingDelivery
from headwater.sinks.delivery.figures import delivery_status, redrive_deliveries, set_aside
from headwater.sinks.mail.declaration import declare_mail
from headwater.sinks.mail.server_address import mail_server
from headwater.sinks.mail.transport import MailTransport, mail_message
from smtp_server import Mailbox, running_mail_server

TO = ["ops@shop.example", "boss@shop.example"]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Mailbox, int]]:
    with running_mail_server() as started:
        yield started


def mail(port: int, rate_limit: str = "100 per hour") -> DeliveryDeclaration:
    url = f"smtp://127.0.0.1:{port}"
    declared = declare_mail(url, TO, "{k} has {n}", "Dear you, {n}", "alerts@shop.example", rate_limit)
    return replace(declared, policy=replace(QUICK, concurrency=1))


def test_each_recipient_gets_a_mail_for_each_row(tmp_path: Path, server: tuple[Mailbox, int]) -> None:
    box, port = server
    box.clear()
    with sink(tmp_path, mail(port)) as mails:
        mails.begin()
        mails.commit(batch(0, ("née\r\nBcc: all@shop.example", 1), ("gone", None)))
        until(lambda: len(box.mails) == 2)
    assert sorted(to for tos, _ in box.mails for to in tos) == sorted(TO)
    for _, got in box.mails:
        assert got["Subject"] == "née Bcc: all@shop.example has 1"
        assert got["Bcc"] is None and got["From"] == "alerts@shop.example"
        assert got.get_content() == "Dear you, 1\r\n" or got.get_content() == "Dear you, 1\n"
    assert len({got["Message-ID"] for _, got in box.mails}) == 2


def test_what_may_pass_is_tried_again_and_what_may_not_is_set_aside(
    tmp_path: Path, server: tuple[Mailbox, int]
) -> None:
    box, port = server
    box.clear()
    answers = iter(["451 later"] * 3)
    box.answer = lambda got: "554 never" if got["To"] == TO[0] else next(answers, "250 OK")
    with sink(tmp_path, mail(port)) as mails:
        mails.begin()
        mails.commit(batch(0, ("a", 1)))
        until(lambda: len(box.mails) == 1 and set_aside(outbox(tmp_path)))
        (letter,) = set_aside(outbox(tmp_path))
        assert letter.error == "the mail server answers 554"
        box.clear()
        assert redrive_deliveries(outbox(tmp_path)) == 1
        until(lambda: len(box.mails) == 1)


def test_a_storm_is_one_mail_with_the_count(tmp_path: Path, server: tuple[Mailbox, int]) -> None:
    box, port = server
    box.clear()
    with sink(tmp_path, mail(port, "3 per hour")) as mails:
        mails.begin()
        mails.commit(batch(0, *((f"k{number}", number) for number in range(500))))
        until(lambda: len(box.mails) == 3 * len(TO))
        mails.commit(batch(1, ("later", 1)))
    subjects = [got["Subject"] for tos, got in box.mails if tos == [TO[0]]]
    assert sorted(subjects) == ["498 messages: k2 has 2, …", "k0 has 0", "k1 has 1"]
    status = delivery_status(outbox(tmp_path))
    assert status is not None and status.waiting == 1  # until the hour is over


def test_a_server_that_is_away_is_tried_again(tmp_path: Path) -> None:
    transport = MailTransport(mail_server("smtp://127.0.0.1:1"), "a@b.example", TO)
    outcome = transport.send(OutgoingDelivery(1, "msg_1", b'{"subject":"","text":""}', recipient=TO[0]))
    assert (outcome.result, outcome.reason) == (
        "retry", "the mail server cannot be used (ConnectionRefusedError)",
    )  # fmt: skip


@given(st.text(), st.text())
def test_no_value_makes_a_header(subject: str, text: str) -> None:
    body = orjson.dumps({"subject": subject, "text": text})
    sent = mail_message(OutgoingDelivery(1, "msg_1", body), "a@b.example", "c@d.example").as_bytes()
    got = message_from_bytes(sent, policy=policy.default)  # type: ignore[arg-type]
    assert {name.lower() for name in got} == {
        *("from", "to", "subject", "date", "message-id", "auto-submitted", "mime-version"),
        *("content-type", "content-transfer-encoding"),
    }
    assert got["To"] == "c@d.example"


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.datetime.now(datetime.UTC)
    host = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(host, critical=True)
        .add_extension(x509.BasicConstraints(True, None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    (tmp_path / "cert.pem").write_bytes(made.public_bytes(pem))
    (tmp_path / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return tmp_path / "cert.pem", tmp_path / "key.pem"


def test_a_login_is_encrypted_and_a_wrong_one_is_told(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with running_mail_server(tls) as (box, port):
        for password in ("secret", "wrong"):
            server = mail_server(f"smtp://alerts%40shop.example:{password}@localhost:{port}")
            transport = MailTransport(replace(server, encryption="starttls"), "alerts@shop.example", TO)
            message = OutgoingDelivery(1, "msg_1", b'{"subject":"s","text":"t"}', recipient=TO[0])
            outcome = transport.send(message)
            transport.close()
            if password == "secret":
                assert outcome.result == "delivered"
            else:
                assert (outcome.result, outcome.reason) == ("retry", "the server refuses the login (535)")
        assert len(box.mails) == 1
