"""The headers of a request, each by its name: read once, where several are asked for.

Invariant: of a header that is there more than once the first counts, as everywhere in Starlette.
"""

from __future__ import annotations

from starlette.types import Scope

HeaderFields = dict[str, str]


def header_fields(scope: Scope) -> HeaderFields:
    """Return the values of all headers by their names in lower case.

    >>> header_fields({"headers": [(b"host", b"a"), (b"host", b"b")]})
    {'host': 'a'}
    """
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
