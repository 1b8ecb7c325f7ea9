"""The two clients of an S3 server: Arrow's for the files, and one that can put under a condition.

Arrow has no conditional put, and removes objects one by one. ``obstore`` has both, in a few megabytes without
dependencies, and is used for nothing else. Both clients have the same server, region and time limits, and
take credentials from the environment.

Invariant: an object is there whole or not at all, and a conditional put replaces nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from typing import Any

from pyarrow import fs

from headwater.errors import UsageError
from headwater.store_address import StoreAddress

CONNECT_SECONDS, REQUEST_SECONDS = 5.0, 20.0
ATTEMPTS = 3
"""How often a client itself tries a request, at once, before ``store_calls`` waits."""


@cache
def file_system(endpoint: str | None, region: str | None) -> fs.S3FileSystem:
    """Return Arrow's client of a server: one in each process."""
    scheme, _, host = (endpoint or "").partition("://")
    server = {"endpoint_override": host, "scheme": scheme} if endpoint else {}
    return fs.S3FileSystem(
        **server,
        region=region or ("us-east-1" if endpoint else None),
        connect_timeout=CONNECT_SECONDS,
        request_timeout=REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        allow_delayed_open=True,  # what is small is one request
        check_directory_existence_before_creation=False,
    )


@cache
def conditional_client(bucket: str, endpoint: str | None, region: str | None) -> Any:
    """Return the client for conditional puts into a bucket: one in each process."""
    from obstore.store import S3Store

    server: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
    return S3Store(
        bucket,
        **server,
        region=region or "us-east-1",
        client_options={
            "allow_http": endpoint is not None and endpoint.startswith("http:"),
            "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
            "timeout": timedelta(seconds=REQUEST_SECONDS),
        },
        retry_config={"max_retries": ATTEMPTS, "retry_timeout": timedelta(seconds=REQUEST_SECONDS)},
    )


def put_if_absent(address: StoreAddress, name: str, data: bytes) -> bool:
    """Put an object if none has its name; tell whether none had.

    Where an answer was lost, an object that is there may be this one.
    """
    import obstore
    from obstore.exceptions import AlreadyExistsError

    client = conditional_client(address.bucket, address.endpoint, address.region)
    try:
        obstore.put(client, f"{address.prefix}/{name}", data, mode="create", use_multipart=False)
    except AlreadyExistsError:
        return False
    return True


def remove(address: StoreAddress, names: Sequence[str]) -> None:
    """Remove objects, many in a request."""
    import obstore

    client = conditional_client(address.bucket, address.endpoint, address.region)
    obstore.delete(client, [f"{address.prefix}/{name}" for name in names])


def failures() -> tuple[type[Exception], ...]:
    """Return what either client raises where a request has failed."""
    try:
        from obstore.exceptions import BaseError
    except ImportError:
        raise UsageError(
            "a home in S3 needs a client that can put under a condition",
            hint="pip install 'headwater[s3]'",
        ) from None
    return OSError, BaseError
