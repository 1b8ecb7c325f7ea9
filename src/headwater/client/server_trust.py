"""Whom a client believes: the certificate of a server, by those who may have signed it.

Invariant: a server whose certificate is not trusted is sent nothing, and is no server that may come back: the
call fails at once instead of being tried again.
"""

from __future__ import annotations

import os
import ssl

import httpx2

from headwater.errors import LogRefused, UsageError

_HINTS = {
    10: "let whoever keeps the server renew it",  # it has expired
    62: "call the server by a name that is in its certificate",
    64: "call the server by a name or address that is in its certificate",
}
"""What to do, by OpenSSL's numbers."""
_UNKNOWN = "name the file with the certificate of whoever signed it: ca_file="


def trusted(url: str, ca_file: str | os.PathLike[str] | None) -> ssl.SSLContext | bool:
    """Return whom a client of a URL believes: those of a file, or whom this machine does."""
    if ca_file is None:
        return True
    if not url.lower().startswith("https:"):
        raise UsageError("a CA file is for a server with TLS", hint="write the URL as https://…")
    path = os.fspath(ca_file)
    try:
        return ssl.create_default_context(cafile=path)
    except ssl.SSLError as error:
        detail = (error.reason or "it is no PEM").replace("_", " ").lower()
        raise UsageError(f'file "{path}" has no certificate', detail=detail, hint="name a PEM file") from None
    except OSError as error:
        raise UsageError(
            f'file "{path}" cannot be read', detail=error.strerror, hint="name a PEM file"
        ) from None


def refuse_untrusted(error: httpx2.TransportError) -> None:
    """Raise where a connection failed because of who answered, or how; another attempt would not help."""
    cause = _tls_error(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        raise LogRefused(
            "the certificate of the server is not trusted",
            detail=cause.verify_message,
            hint=_HINTS.get(cause.verify_code, _UNKNOWN),
        ) from None
    if getattr(cause, "reason", None) in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        raise LogRefused("the server does not speak TLS", hint="write the URL as http://…") from None


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """Return the error of TLS that another was raised from."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error
