"""Certificates for a broker and its clients, made with ``openssl``: good ones, and some that are not."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kafka_broker import Missing

KEY_PASSWORD = "rabbit-hole-2208"
_CONFIG = """
[ca]
default_ca = own
[own]
database = {root}/index.txt
new_certs_dir = {root}
serial = {root}/serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[server]
subjectAltName = IP:127.0.0.1,DNS:localhost
"""


@dataclass(frozen=True)
class Certificates:
    """Files in a folder of the test's own."""

    root: Path
    ca: Path
    """Who has signed all of them."""
    other_ca: Path
    """One who has signed none."""
    broker: Path
    """Key and certificate of the broker, in one file."""
    expired: Path
    """The same, with a certificate that has expired."""
    client: Path
    client_key: Path
    """The key of the client's certificate, behind ``KEY_PASSWORD``."""


def make(root: Path) -> Certificates:
    """Make all of them."""
    if not shutil.which("openssl"):
        raise Missing("no openssl to make certificates with")
    (root / "openssl.cnf").write_text(_CONFIG.format(root=root))
    (root / "index.txt").write_text("")
    (root / "serial").write_text("1000")
    ca, other = (_authority(root, name) for name in ("ca", "other-ca"))
    broker, expired = _signed(root, "broker"), _signed(root, "expired", "20200101000000Z", "20200201000000Z")
    client = _signed(root, "client")
    locked = root / "client.locked.key"
    _openssl(
        "pkcs8", "-topk8", "-in", root / "client.key", "-out", locked, "-passout", f"pass:{KEY_PASSWORD}"
    )
    for name in (broker, expired):
        name.write_text(name.with_suffix(".key").read_text() + name.read_text())
    return Certificates(root, ca, other, broker, expired, client, locked)


def _authority(root: Path, name: str) -> Path:
    made = root / f"{name}.pem"
    _openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
        "-keyout", root / f"{name}.key", "-out", made,
    )  # fmt: skip
    return made


def _signed(root: Path, name: str, start: str | None = None, end: str | None = None) -> Path:
    made, key, request = (root / f"{name}.{end_of}" for end_of in ("pem", "key", "csr"))
    _openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
    times = ["-startdate", start, "-enddate", end] if start and end else ["-days", "2"]
    _openssl(
        "ca", "-batch", "-notext", "-config", root / "openssl.cnf", "-extensions", "server",
        "-cert", root / "ca.pem", "-keyfile", root / "ca.key", "-in", request, "-out", made, *times,
    )  # fmt: skip
    return made


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(
        ["openssl", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        raise Missing(f"openssl cannot {arguments[0]}: {done.stdout.decode().strip()}")
