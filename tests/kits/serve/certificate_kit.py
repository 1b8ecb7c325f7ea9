"""Certificates of a server on this machine, made for a test: good ones, and some that are not."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class WebCertificates:
    """Files in a folder of the test's own."""

    ca: Path
    """Who has signed the server's certificate."""
    other_ca: Path
    """One who has not."""
    certificate: Path
    """Of 127.0.0.1, and no other name."""
    key: Path
    other_key: Path
    """A key of no certificate."""
    locked_key: Path
    """The key, behind a password."""


def make_certificates(folder: Path) -> WebCertificates:
    """Make all of them."""
    ours, theirs, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    made = WebCertificates(
        *(folder / name for name in ("ca.pem", "other.pem", "cert.pem", "key.pem", "other.key", "locked.key"))
    )
    made.ca.write_bytes(_pem(_certificate("ca", ours, "ca", ours)))
    made.other_ca.write_bytes(_pem(_certificate("other", theirs, "other", theirs)))
    made.certificate.write_bytes(_pem(_certificate("server", key, "ca", ours)))
    for path, owner in ((made.key, key), (made.other_key, theirs)):
        path.write_bytes(owner.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"rabbit"))
    made.locked_key.write_bytes(locked)
    return made


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, signer: str, by: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    now, authority = datetime.now(UTC), name == signer
    built = (
        x509.CertificateBuilder(_name(signer), _name(name), key.public_key(), x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.BasicConstraints(authority, None), critical=True)
    )
    if not authority:
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        built = built.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    return built.sign(by, SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)
