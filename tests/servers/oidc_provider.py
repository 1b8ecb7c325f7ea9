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
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from http_thread import serving

CLIENT, CLIENT_SECRET = "till", "cheshire-grin-5512"
AUDIENCE, ISSUER = "kafka", "http://wonderland.test"


@dataclass
class Provider:
    """What it is to do, which a test may change, and what it has done."""

    key: Path
    url: str = ""
    lifetime: int = 3600
    """For how many seconds a token is good."""
    away: bool = False
    """Whether it answers with an error, whatever it is asked for."""
    tokens: list[str] = field(default_factory=list)

    @property
    def issued(self) -> int:
        return len(self.tokens)


@contextmanager
def running_provider(folder: Path) -> Iterator[Provider]:
    """Serve ``/keys`` and ``/token`` below its URL, and stop at the end."""
    provider = Provider(folder / "oidc.key")
    _openssl("genrsa", "-out", str(provider.key), "2048")
    with serving(type("Handler", (_Handler,), {"provider": provider})) as provider.url:
        yield provider


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        told = _openssl("rsa", "-in", str(self.provider.key), "-noout", "-modulus")
        modulus = told.decode().strip().partition("=")[2]
        public = {"kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256", "e": "AQAB"}
        self._answer(200, {"keys": [{**public, "n": _text(bytes.fromhex(modulus))}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.provider.away:
            self._answer(503, {"error": "temporarily_unavailable"})
            return
        right = base64.b64encode(f"{CLIENT}:{CLIENT_SECRET}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {right}":
            self._answer(401, {"error": "invalid_client"})
            return
        self.provider.tokens.append(self._token())
        answer = {"token_type": "bearer", "expires_in": self.provider.lifetime}
        self._answer(200, {"access_token": self.provider.tokens[-1], **answer})

    def _token(self) -> str:
        now = int(time.time())
        claims = {
            "sub": CLIENT,
            "aud": AUDIENCE,
            "iss": ISSUER,
            "iat": now,
            "exp": now + self.provider.lifetime,
        }
        parts = [{"alg": "RS256", "typ": "JWT", "kid": "one"}, claims]
        signed = ".".join(_text(json.dumps(part).encode()) for part in parts)
        signature = _openssl("dgst", "-sha256", "-sign", str(self.provider.key), stdin=signed.encode())
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
