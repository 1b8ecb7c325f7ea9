"""A small part of Spark SQL: columns, literals, calls, casts and arithmetic.

``timestamp_millis(at)``, ``to_timestamp(day, 'dd.MM.yyyy')``, ``payload.meta.at / 1000 AS seconds``. What is
not known is refused by name. Invariant: an expression that has a type over columns is computed for every
batch of them, in that type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headwater import schema as schemas
from headwater.errors import HeadwaterError, UsageError, nearest
from headwater.expressions import functions
from headwater.expressions.functions import FUNCTIONS

Compute = Callable[[pa.RecordBatch], pa.Array]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<text>'(?:[^']|'')*'|\"[^\"]*\")|(?P<quoted>`[^`]+`)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign>[-+*/(),.\[\]]))"
)


@dataclass(frozen=True)
class Expression:
    """What is computed for each record, and what the column is called that holds it."""

    text: str
    """As it was written, without its name."""
    name: str | None
    """The name behind AS."""
    columns: frozenset[str]
    """The columns that it reads."""
    compute: Compute

    @property
    def column(self) -> str | None:
        """The column that it is, if it is nothing else."""
        name = self.text.strip("`")
        return name if self.name is None and self.columns == {name} else None

    def type(self, columns: pa.Schema) -> pa.DataType:
        """Return the type that it has over columns, or refuse them."""
        for name in self.columns:
            if name not in columns.names:
                hint = nearest(name, columns.names) or "columns: " + ", ".join(columns.names)
                raise UsageError(f'expression "{self.text}" has an unknown column "{name}"', hint=hint)
        nulls = [pa.nulls(1, field.type) for field in columns]
        try:
            return self.compute(pa.RecordBatch.from_arrays(nulls, columns.names)).type
        except HeadwaterError as error:
            raise UsageError(
                f'expression "{self.text}" cannot be computed', detail=error.message, hint=error.hint
            ) from None

    def over(self, batch: pa.RecordBatch) -> pa.Array:
        """Return it for each row of a batch."""
        return self.compute(batch)


def parse(text: str) -> Expression:
    """Return the expression that a text is, or refuse it."""
    parser = _Parser(text)
    compute = parser.sum()
    end = parser.starts[parser.at] if parser.at < len(parser.starts) else len(text)
    name = parser.identifier("a name") if parser.accept_word("as") else None
    parser.finish()
    return Expression(text[:end].strip(), name, frozenset(parser.columns), compute)


def split(text: str) -> list[str]:
    """Return the expressions of a text that has commas between them."""
    parts, depth, start = list[str](), 0, 0
    for kind, value, at in _tokens(text):
        if kind != "sign":
            continue
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(value, 0)
        if value == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the text and the place of each token."""
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise _unreadable(text, f'"{text[position:].strip()[:1]}" is not known here')
        yield match.lastgroup, match.group(match.lastgroup), match.start(match.lastgroup)
        position = match.end()


def _unreadable(text: str, reason: str) -> UsageError:
    return UsageError(
        f'expression "{text}" cannot be read',
        detail=reason,
        hint="columns, numbers, 'text', + - * /, CAST(… AS …), " + ", ".join(FUNCTIONS),
    )


class _Parser:
    """Reads the tokens of one expression, from left to right."""

    def __init__(self, text: str):
        self.text = text
        self.columns: set[str] = set()
        self.at = 0
        tokens = list(_tokens(text))
        self.tokens = [(kind, value) for kind, value, _ in tokens]
        self.starts = [at for _, _, at in tokens]

    def error(self, reason: str) -> UsageError:
        return _unreadable(self.text, reason)

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ("end", "")

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.at += 1
        return token

    def accept(self, *signs: str) -> str | None:
        kind, value = self.peek()
        if kind == "sign" and value in signs:
            self.at += 1
            return value
        return None

    def accept_word(self, word: str) -> bool:
        kind, value = self.peek()
        found = kind == "name" and value.lower() == word
        self.at += found
        return found

    def expect(self, sign: str) -> None:
        if self.accept(sign) is None:
            raise self.error(
                f'"{sign}" is missing' + (f' before "{self.peek()[1]}"' if self.peek()[1] else "")
            )

    def finish(self) -> None:
        if self.peek()[0] != "end":
            raise self.error(f'"{self.peek()[1]}" is too much')

    def identifier(self, what: str) -> str:
        kind, value = self.take()
        if kind not in ("name", "quoted"):
            raise self.error(f"{what} is missing")
        return value.strip("`")

    # From weak to strong

    def sum(self) -> Compute:
        left = self.product()
        while sign := self.accept("+", "-"):
            left = _binary(sign, left, self.product())
        return left

    def product(self) -> Compute:
        left = self.signed()
        while sign := self.accept("*", "/"):
            left = _binary(sign, left, self.signed())
        return left

    def signed(self) -> Compute:
        if self.accept("-"):
            return _binary("-", _literal(pa.scalar(0, pa.int64())), self.signed())
        return self.path()

    def path(self) -> Compute:
        found = self.primary()
        while sign := self.accept(".", "["):
            if sign == ".":
                found = _field(found, self.identifier("the name of a field"))
            else:
                found = _element(found, self.literal())
                self.expect("]")
        return found

    def literal(self) -> pa.Scalar:
        kind, value = self.take()
        if kind == "number":
            return pa.scalar(float(value) if "." in value else int(value))
        if kind == "text":
            return pa.scalar(value[1:-1].replace("''", "'") if value[0] == "'" else value[1:-1])
        raise self.error("a number or a text is missing")

    def primary(self) -> Compute:
        kind, value = self.peek()
        if kind in ("number", "text"):
            return _literal(self.literal())
        if self.accept("("):
            inside = self.sum()
            self.expect(")")
            return inside
        if kind == "name" and value.lower() == "null":
            self.at += 1
            return _literal(pa.scalar(None, pa.null()))
        if kind == "name" and self.peek(1) == ("sign", "("):
            return self.cast() if value.lower() == "cast" else self.call()
        name = self.identifier("a column, a value or a call")
        self.columns.add(name)
        return lambda batch: batch.column(name)

    def cast(self) -> Compute:
        self.at += 2
        inside = self.sum()
        if not self.accept_word("as"):
            raise self.error('CAST has no "AS"')
        kind = schemas.parse(f"x {self.identifier('a type')}").field(0).type
        self.expect(")")
        return lambda batch: functions.cast(inside(batch), kind)

    def call(self) -> Compute:
        name = self.take()[1]
        known = FUNCTIONS.get(name.lower())
        if known is None:
            hint = nearest(name.lower(), FUNCTIONS) or "functions: " + ", ".join(FUNCTIONS)
            raise UsageError(f'expression "{self.text}" has an unknown function "{name}"', hint=hint)
        arguments = self.arguments()
        if not known.least <= len(arguments) <= known.most:
            raise self.error(f"{name} does not take {len(arguments)} arguments")
        return lambda batch: known.compute([each(batch) for each in arguments])

    def arguments(self) -> Sequence[Compute]:
        self.expect("(")
        if self.accept(")"):
            return []
        found = [self.sum()]
        while self.accept(","):
            found.append(self.sum())
        self.expect(")")
        return found


def _literal(value: pa.Scalar) -> Compute:
    return lambda batch: pa.repeat(value, len(batch))


def _binary(sign: str, left: Compute, right: Compute) -> Compute:
    return lambda batch: functions.arithmetic(sign, left(batch), right(batch))


def _field(inside: Compute, name: str) -> Compute:
    def compute(batch: pa.RecordBatch) -> pa.Array:
        array = inside(batch)
        if not pa.types.is_struct(array.type):
            raise UsageError(f'".{name}" needs a STRUCT, not {array.type}')
        names = [field.name for field in array.type]
        if name not in names:
            hint = nearest(name, names) or "fields: " + ", ".join(names)
            raise UsageError(f'there is no field "{name}"', hint=hint)
        return pc.struct_field(array, name)

    return compute


def _element(inside: Compute, key: pa.Scalar) -> Compute:
    def compute(batch: pa.RecordBatch) -> pa.Array:
        array = inside(batch)
        if pa.types.is_map(array.type):
            return pc.map_lookup(array, key.cast(array.type.key_type), "first")
        if pa.types.is_list(array.type) and pa.types.is_integer(key.type):
            return _at(array, key.as_py())
        raise UsageError(f"[{key}] needs a MAP or an ARRAY, not {array.type}")

    return compute


def _at(array: pa.Array, index: int) -> pa.Array:
    """Return the elements at an index, null where a list is shorter."""
    long_enough = pc.fill_null(pc.greater(pc.list_value_length(array), index), False)
    chosen = pc.list_element(array.filter(long_enough), index)
    where = pc.if_else(long_enough, pc.subtract(pc.cumulative_sum(long_enough.cast(pa.int64())), 1), None)
    return chosen.take(where)
