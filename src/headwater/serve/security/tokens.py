"""Tokens: made once, shown once, kept as a hash in a file that only its owner may read.

A token has 256 random bits, so a plain SHA-256 of it cannot be guessed back, and comparing hashes tells
nothing of a token either. Invariant: no token is in the file, in a log or in an error; a token that was
revoked is refused by every server from its next request on.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

from headwater import durable
from headwater.errors import HeadwaterError, UsageError, nearest
from headwater.serve.security import scopes as scope_texts
from headwater.serve.settings import state_home
from headwater.topic import check_name
from headwater.values.json_ready import JsonReady

PREFIX = "hw_"
FILE = "tokens.json"
_Stamp = tuple[int, int, int] | None


@dataclass(frozen=True)
class AccessToken(JsonReady):
    """A token as it is kept: what it is called and allows, and the hash by which it is known."""

    name: str
    scopes: tuple[str, ...]
    created: str
    digest: str

    def facts(self) -> dict[str, object]:
        """Return what is told of it: everything but the hash."""
        return {"name": self.name, "scopes": self.scopes, "created": self.created}


class TokenStore:
    """The tokens of a file, as it is now.

    >>> import tempfile
    >>> store = TokenStore(Path(tempfile.mkdtemp()) / "tokens.json")
    >>> shown = store.create("shop", ["send:orders"])
    >>> store.find(shown).scopes
    ('send:orders',)
    >>> store.revoke("shop")
    >>> store.find(shown) is None
    True
    """

    def __init__(self, path: Path):
        self.path = path
        self._read_at: _Stamp = None
        self._tokens: tuple[AccessToken, ...] = ()

    @classmethod
    def beside(cls, url: str, state: Path | None = None) -> TokenStore:
        """Return the store of a log's servers, unless they are told otherwise."""
        return cls((state or state_home(url)) / FILE)

    def tokens(self) -> tuple[AccessToken, ...]:
        """Return all tokens; the file is read again when it has changed."""
        stamp = _stamp(self.path)
        if stamp != self._read_at:
            self._tokens, self._read_at = _read(self.path), stamp
        return self._tokens

    def find(self, text: str) -> AccessToken | None:
        """Return the token that somebody shows; each one is compared, in constant time."""
        shown, match = _digest(text), None
        for token in self.tokens():
            if hmac.compare_digest(token.digest, shown):
                match = token
        return match

    def named(self, name: str) -> AccessToken | None:
        """Return the token of a name."""
        return next((token for token in self.tokens() if token.name == name), None)

    def create(self, name: str, scopes: Iterable[str]) -> str:
        """Make a token and return it; it is not kept, so nobody can ask for it again."""
        check_name("token", name)
        allowed, text = scope_texts.checked(scopes), PREFIX + secrets.token_urlsafe(32)
        made = AccessToken(name, allowed, datetime.now(UTC).isoformat(timespec="seconds"), _digest(text))

        def add(tokens: tuple[AccessToken, ...]) -> tuple[AccessToken, ...]:
            if any(token.name == name for token in tokens):
                raise UsageError(
                    f'token "{name}" exists already', hint="revoke it first, or choose another name"
                )
            return (*tokens, made)

        self._change(add)
        return text

    def revoke(self, name: str) -> None:
        """Remove a token: from now on it is refused."""

        def remove(tokens: tuple[AccessToken, ...]) -> tuple[AccessToken, ...]:
            names = [token.name for token in tokens]
            if name not in names:
                raise UsageError(f'no token "{name}"', hint=nearest(name, names))
            return tuple(token for token in tokens if token.name != name)

        self._change(remove)

    def _change(self, change: Callable[[tuple[AccessToken, ...]], tuple[AccessToken, ...]]) -> None:
        durable.make(self.path.parent, private=True)
        with _locked(self.path):
            _write(self.path, change(_read(self.path)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _stamp(path: Path) -> _Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _read(path: Path) -> tuple[AccessToken, ...]:
    try:
        listed = orjson.loads(path.read_bytes())["tokens"]
        return tuple(
            AccessToken(each["name"], tuple(each["scopes"]), each["created"], each["digest"])
            for each in listed
        )
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HeadwaterError(f'tokens in "{path}" cannot be read', detail=type(error).__name__) from None


def _write(path: Path, tokens: tuple[AccessToken, ...]) -> None:
    """Replace the file: whoever reads it sees the old one or the new one."""
    new = path.with_name(f"{path.name}.new")
    listed = {"tokens": [{**asdict(token), "scopes": list(token.scopes)} for token in tokens]}
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(orjson.dumps(listed, option=orjson.OPT_INDENT_2))
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    durable.sync(path.parent)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
