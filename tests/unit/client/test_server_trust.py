"""Whom a client believes: files that name nobody are refused, and so is a server that nobody vouches for."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx2
import pytest

from certificate_kit import make_certificates
from headwater import Client
from headwater.client.server_trust import refuse_untrusted, trusted
from headwater.errors import LogRefused, UsageError

URL = "https://127.0.0.1:9"


def test_those_of_a_file_are_believed_and_nobody_else(tmp_path: Path) -> None:
    context = trusted(URL, make_certificates(tmp_path).ca)
    assert isinstance(context, ssl.SSLContext) and context.cert_store_stats()["x509"] == 1
    assert context.check_hostname and context.verify_mode is ssl.CERT_REQUIRED
    assert trusted(URL, None) is True


def test_a_file_that_names_nobody_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.pem").write_text("nothing\n")
    for path, words in ((tmp_path / "none.pem", "cannot be read"), (tmp_path / "text.pem", "no certificate")):
        with pytest.raises(UsageError, match=words):
            Client(URL, ca_file=path)


def test_a_file_for_a_server_without_tls_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="for a server with TLS"):
        trusted("http://127.0.0.1:9", tmp_path / "ca.pem")


def test_what_waiting_does_not_mend_is_raised_and_the_rest_is_not() -> None:
    def failed(cause: Exception) -> httpx2.ConnectError:
        error = httpx2.ConnectError("no")
        error.__cause__ = cause
        return error

    expired, plain = ssl.SSLCertVerificationError(1, "expired"), ssl.SSLError(1, "wrong version number")
    expired.verify_code, expired.verify_message = 10, "certificate has expired"
    plain.reason = "WRONG_VERSION_NUMBER"
    with pytest.raises(LogRefused, match="not trusted") as refused:
        refuse_untrusted(failed(expired))
    assert refused.value.detail == "certificate has expired" and "renew" in str(refused.value.hint)
    with pytest.raises(LogRefused, match="does not speak TLS"):
        refuse_untrusted(failed(plain))
    refuse_untrusted(failed(ConnectionRefusedError()))
    refuse_untrusted(failed(ssl.SSLEOFError(8, "it went away")))
