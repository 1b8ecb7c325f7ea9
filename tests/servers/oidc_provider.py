"""An OpenID provider of a few lines: it gives a client that knows its secret a token, signed by its own key.

Keys and signatures are ``openssl``'s. Invariant: whoever has no right secret gets no token.
"""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from http_thread import serving

CLIENT, CLIENT_SECRET = "till", "cheshire-grin-5512"
AUDIENCE, ISSUER = "kafka", "http://wonderland.test"


@contextmanager
def running_provider(folder: Path) -> Iterator[str]:
    """Serve ``/keys`` and ``/token``, yield the URL before those, and stop at the end."""
    key = folder / "oidc.key"
    _openssl("genrsa", "-out", str(key), "2048")
    with serving(type("Handler", (_Handler,), {"key": key})) as url:
        yield url


class _Handler(BaseHTTPRequestHandler):
    key: Path

    def do_GET(self) -> None:
        modulus = (
            _openssl("rsa", "-in", str(self.key), "-noout", "-modulus").decode().strip().partition("=")[2]
        )
        public = {"kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256", "e": "AQAB"}
        self._answer(200, {"keys": [{**public, "n": _text(bytes.fromhex(modulus))}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        right = base64.b64encode(f"{CLIENT}:{CLIENT_SECRET}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {right}":
            self._answer(401, {"error": "invalid_client"})
            return
        self._answer(200, {"access_token": self._token(), "token_type": "bearer", "expires_in": 3600})

    def _token(self) -> str:
        now = int(time.time())
        claims = {"sub": CLIENT, "aud": AUDIENCE, "iss": ISSUER, "iat": now, "exp": now + 3600}
        parts = [{"alg": "RS256", "typ": "JWT", "kid": "one"}, claims]
        signed = ".".join(_text(json.dumps(part).encode()) for part in parts)
        signature = _openssl("dgst", "-sha256", "-sign", str(self.key), stdin=signed.encode())
        return f"{signed}.{_text(signature)}"

    def _answer(self, status: int, body: Any) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: Any) -> None: ...


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _openssl(*arguments: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *arguments], input=stdin, check=True, capture_output=True).stdout
