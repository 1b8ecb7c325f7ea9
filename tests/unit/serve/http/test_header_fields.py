"""Headers by name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from headwater.serve.http.header_fields import header_fields

NAMES = st.sampled_from([b"host", b"origin", b"content-type"])


@given(st.lists(st.tuples(NAMES, st.binary(max_size=3))))
def test_a_header_has_the_value_that_starlette_gives_it(raw: list[tuple[bytes, bytes]]) -> None:
    fields, headers = header_fields({"headers": raw}), Headers(raw=raw)
    assert fields == {name: headers[name] for name in set(headers.keys())}
