"""The rows of a batch as requests to ``_bulk``, and what the answers mean.

Each row goes with its version (``version_type: external``): the server leaves out what is older than what it
has, and says so for the row (409), which is no error here. Invariant: a request that is sent again, by
whomever, never puts an older row or deletion in the place of a newer one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import RowError
from headwater.sinks.key_text import key_texts
from headwater.sinks.search.declaration import SearchSchema
from headwater.sinks.search.opensearch.mapping import MARKER
from headwater.sinks.search.opensearch.rest import Answer, refusal
from headwater.topic import Topic
from headwater.values import jsonl
from headwater.values.fitting import Fitted

REQUEST_BYTES = 8 << 20
"""About how much goes in one request; a server takes 100 MB at most, unless it is told otherwise."""
_ID_BYTES = 512
OLDER = 409
ANSWER = "filter_path=errors,items.*.status,items.*.error.type"


def requests(settled: Fitted, declared: SearchSchema, version: int) -> Iterator[bytes]:
    """Yield the bodies of the requests that write a batch."""
    if not len(settled):
        return
    lines = _lines(settled, declared, version)
    sizes = np.cumsum(pc.binary_length(lines).to_numpy())
    cuts = np.flatnonzero(np.diff(sizes // REQUEST_BYTES)) + 1
    for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True):
        yield "".join(lines.slice(start, end - start).to_pylist()).encode()


def check(answer: Answer, what: str) -> None:
    """Raise the first refusal of a row, if there is one."""
    if not answer.body.get("errors"):
        return
    for item in answer.body["items"]:
        (result,) = item.values()
        if result["status"] >= 300 and not _harmless(result):
            raise _refused(result, what)


def _harmless(result: dict[str, Any]) -> bool:
    """Tell whether a row is there already, or one that is newer; or was to be deleted and is not there."""
    return result["status"] == OLDER or (result["status"] == 404 and "error" not in result)


def _refused(result: dict[str, Any], what: str) -> Exception:
    status, reason = int(result["status"]), str(result.get("error", {}).get("type", ""))
    if status == 400:
        return RowError(f"a row does not fit {what}", detail=reason, hint="compare the mapping of the index")
    return refusal(status, reason, what)


def _lines(settled: Fitted, declared: SearchSchema, version: int) -> pa.Array:
    """Return for each row what is to be done, and the row."""
    places = pa.array(key_texts(settled.rows, declared), pa.string())
    _check_places(places, declared.what)
    rows = pa.array(jsonl.encode(settled.rows, Topic(declared.what, (declared.schema,))), pa.binary())
    how = f',"version":{version},"version_type":"external"}}}}\n'
    put = _join('{"index":{"_id":', jsonl.text(places), how, rows.cast(pa.string()), "\n")
    delete = _join('{"delete":{"_id":', jsonl.text(places), how)
    return pc.if_else(pa.array(settled.deleted), delete, put)


def _join(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _check_places(places: pa.Array, what: str) -> None:
    sizes = pc.binary_length(places).to_numpy()
    if sizes.min() == 0 or sizes.max() > _ID_BYTES:
        raise RowError(f"key of {what} is empty, or longer than {_ID_BYTES} bytes", hint="use a shorter key")
    if pc.any(pc.equal(places, MARKER)).as_py():
        raise RowError(f'key of {what} is "{MARKER}"', detail="that document tells how far the index has got")
