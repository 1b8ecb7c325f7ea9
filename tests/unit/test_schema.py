from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import schema
from headwater.errors import SchemaError

SIMPLE = st.sampled_from(
    [
        "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY", "DATE",
        "TIMESTAMP", "TIMESTAMP_NTZ", "DECIMAL(10,0)", "DECIMAL(38,10)",
    ]
)  # fmt: skip
TYPES = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        inner.map(lambda t: f"ARRAY<{t}>"),
        st.tuples(SIMPLE, inner).map(lambda t: f"MAP<{t[0]}, {t[1]}>"),
        st.tuples(inner, inner).map(lambda t: f"STRUCT<a: {t[0]}, b: {t[1]} NOT NULL>"),
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(TYPES, st.booleans()), min_size=1, max_size=6))
def test_what_is_written_is_read_back(columns: list[tuple[str, bool]]) -> None:
    text = ", ".join(f"c{i} {kind}{' NOT NULL' if null else ''}" for i, (kind, null) in enumerate(columns))
    assert schema.ddl(schema.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id LONG, n INTEGER, b BYTE, s SHORT, r REAL", "id BIGINT, n INT, b TINYINT, s SMALLINT, r FLOAT"),
        ("id: bigint, name: string", "id BIGINT, name STRING"),
        ("a DECIMAL, b DEC(4), c NUMERIC(4,2)", "a DECIMAL(10,0), b DECIMAL(4,0), c DECIMAL(4,2)"),
        ("v VARCHAR(10), c CHAR(3)", "v STRING, c STRING"),
        ("`odd name` INT COMMENT 'it''s' , x STRING", None),
        ("`odd name` INT COMMENT 'why', x STRING", "`odd name` INT, x STRING"),
        ("at TIMESTAMP_LTZ", "at TIMESTAMP"),
        ("JSON", "value VARIANT"),
        ("id BIGINT, doc VARIANT NOT NULL", "id BIGINT, doc VARIANT NOT NULL"),
    ],
)
def test_spark_spellings_are_understood(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(SchemaError):
            schema.parse(text)
    else:
        assert schema.ddl(schema.parse(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id",
        "id BIGINT,",
        "id ARRAY<INT",
        "id MAP<INT>",
        "1d INT",
        "a DECIMAL(40,2)",
        "a INT b INT",
        "a INT; x",
    ],
)
def test_nonsense_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        schema.parse(text)
    assert caught.value.hint


def test_a_misspelt_type_is_answered_with_the_nearest() -> None:
    with pytest.raises(SchemaError) as caught:
        schema.parse("id BIGNT")
    assert caught.value.hint == 'did you mean "BIGINT"?'


def test_a_variant_is_stored_as_text_and_known_as_such() -> None:
    field = schema.parse("doc VARIANT").field(0)
    assert field.type == pa.string()
    assert schema.is_variant(field)
