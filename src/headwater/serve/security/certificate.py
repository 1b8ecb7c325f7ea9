"""The certificate of a server, looked at before it listens: what cannot serve is told at once, by its file.

Invariant: nobody is asked for a password at a terminal, and nothing of what the files hold is in an error.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from headwater.errors import UsageError
from headwater.serve.settings import ServeSettings

_FILES = "TLS needs a certificate and its key, as PEM files"


def check_certificate(settings: ServeSettings) -> None:
    """Refuse half of what TLS needs, files that are something else, and a key of another certificate."""
    certificate, key = settings.certificate, settings.key
    if (certificate is None) != (key is None):
        raise UsageError("TLS needs a certificate and its key", hint="name both files, or neither")
    if certificate is None or key is None:
        return
    for path in (certificate, key):
        _check_file(path)
    _check_holds_certificate(certificate)
    _check_key(certificate, key)


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise UsageError(f'no file "{path}"', hint=_FILES)
    try:
        path.open("rb").close()
    except OSError as error:
        raise UsageError(f'file "{path}" cannot be read', detail=error.strerror, hint=_FILES) from None


def _check_holds_certificate(path: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cafile=path)
    except ssl.SSLError as error:
        raise UsageError(f'file "{path}" is no certificate', detail=_reason(error), hint=_FILES) from None


def _check_key(certificate: Path, key: Path) -> None:
    def no_password() -> str:
        raise UsageError(
            f'the key in "{key}" is behind a password',
            hint="write it without one, in a file that only the server may read",
        )

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            message = f'the key in "{key}" is not that of the certificate in "{certificate}"'
            raise UsageError(message, hint="name the key that the certificate was made for") from None
        message = f'the certificate in "{certificate}" cannot be served with the key in "{key}"'
        raise UsageError(message, detail=_reason(error), hint=_FILES) from None


def _reason(error: ssl.SSLError) -> str:
    """Return what OpenSSL says, in words: ``no certificate or crl found``."""
    return (error.reason or "it is no PEM").replace("_", " ").lower()
