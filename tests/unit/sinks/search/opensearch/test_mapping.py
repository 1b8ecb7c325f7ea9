"""How columns lie in an index on a server."""

from __future__ import annotations

import json

import pytest

from headwater.errors import SchemaError
from headwater.sinks.search.declaration import declare_search
from headwater.sinks.search.opensearch.mapping import MARKER, check_names, index_settings


def test_columns_have_a_type_by_which_they_are_found() -> None:
    schema = ("id BIGINT, name STRING, city STRING, n DOUBLE, d DECIMAL(9,2), at TIMESTAMP, day DATE, "
              "ok BOOLEAN, raw BINARY, list ARRAY<INT>, free VARIANT")  # fmt: skip
    made = json.loads(index_settings(declare_search("index", schema, "id", ["name"])))
    fields = made["mappings"]["properties"]
    types = {name: field["type"] for name, field in fields.items()}
    assert types == {
        "id": "long", "name": "text", "city": "keyword", "n": "double", "d": "double", "at": "date",
        "day": "date", "ok": "boolean", "raw": "binary", "list": "object", "free": "object", MARKER: "object",
    }  # fmt: skip
    assert made["settings"]["index"]["gc_deletes"] == "1h"


@pytest.mark.parametrize("name", ["_id", "a.b", MARKER, " "])
def test_a_name_that_means_something_else_there_is_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="another name"):
        check_names(declare_search("index", f"id BIGINT, t STRING, `{name}` INT", "id", ["t"]))
