"""Where in an object store a pipeline's home is, as it is written down: ``s3://bucket/shop``.

Credentials come from the environment alone, so an address can be shown and sent to workers. Two clients read
it, one for the files and one for conditional puts; what both need is decided here, so that they agree.

Invariant: an address has no secret.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from headwater.errors import UsageError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""How what is no path begins; made a path it has one slash less, and is refused all the same."""
_SETTINGS = ("endpoint", "region")


@dataclass(frozen=True)
class StoreAddress:
    """A prefix of a bucket, and how it is reached."""

    bucket: str
    prefix: str
    endpoint: str | None = None
    """The URL of a server that is not Amazon's."""
    region: str | None = None

    @classmethod
    def parse(cls, url: str) -> StoreAddress:
        """Read ``s3://bucket/prefix?endpoint=http://host:9000&region=eu-west-1``.

        >>> StoreAddress.parse("s3://bucket/shop").below("state")
        StoreAddress(bucket='bucket', prefix='shop/state', endpoint=None, region=None)
        """
        split = urlsplit(url)
        settings = dict(parse_qsl(split.query))
        if "@" in split.netloc:
            raise UsageError(
                "the address of a pipeline's home has credentials in it",
                hint="put them into the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
        prefix = split.path.strip("/")
        unknown = sorted(settings.keys() - set(_SETTINGS))
        if split.scheme != "s3" or not split.netloc or not prefix or unknown or split.fragment:
            raise UsageError(
                f'"{url}" is no address of a pipeline\'s home',
                detail=f'unknown setting "{unknown[0]}"' if unknown else None,
                hint='use a directory, or "s3://bucket/folder", with ?endpoint=URL for a server that is not '
                "Amazon's, and ?region=NAME",
            )
        return cls(split.netloc, prefix, **{name: settings.get(name) for name in _SETTINGS})

    def __str__(self) -> str:
        settings = {name: value for name in _SETTINGS if (value := getattr(self, name))}
        query = f"?{urlencode(settings, safe=':/')}" if settings else ""
        return f"s3://{self.bucket}/{self.prefix}{query}"

    def below(self, *parts: str) -> StoreAddress:
        """Return the address of something within it."""
        return replace(self, prefix="/".join([self.prefix, *parts]))

    def resolved(self) -> StoreAddress:
        """Return it with what the environment says of the server, if the address does not."""
        environment = os.environ.get
        endpoint = self.endpoint or environment("AWS_ENDPOINT_URL_S3") or environment("AWS_ENDPOINT_URL")
        region = self.region or environment("AWS_REGION") or environment("AWS_DEFAULT_REGION")
        return replace(self, endpoint=endpoint, region=region)


def is_store(home: object) -> bool:
    """Tell whether a home is named by an address, and not by a path."""
    return isinstance(home, str | os.PathLike) and _SCHEME.match(str(home)) is not None


def working_folder(address: StoreAddress) -> Path:
    """Return where this machine has its copy of the home at an address."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "headwater" / "homes" / hashlib.sha256(str(address).encode()).hexdigest()[:16]
