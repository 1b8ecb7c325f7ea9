"""Reads the text of an expression, from left to right, and makes of it what computes it.

What binds weakest is read first: OR, AND, NOT, comparisons, sums, products, signs, paths, calls. Invariant:
a text is read to its end or refused, with what is known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headwater import schema as schemas
from headwater.errors import UsageError, nearest
from headwater.expressions import conditions, functions
from headwater.expressions.functions import FUNCTIONS

Compute = Callable[[pa.RecordBatch], pa.Array]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<text>'(?:[^']|'')*'|\"[^\"]*\")|(?P<quoted>`[^`]+`)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign><=>|<>|!=|<=|>=|==|[-+*/(),.\[\]=<>]))"
)
_COMPARISONS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")
_CONSTANTS = {"null": pa.scalar(None, pa.null()), "true": pa.scalar(True), "false": pa.scalar(False)}


@dataclass(frozen=True)
class ParsedExpression:
    """What a text says."""

    text: str
    """The expression, without its name."""
    name: str | None
    """The name behind AS."""
    columns: frozenset[str]
    compute: Compute


def read(text: str) -> ParsedExpression:
    """Read an expression, or refuse it."""
    parser = _Parser(text)
    compute = parser.any_of()
    end = parser.starts[parser.at] if parser.at < len(parser.starts) else len(text)
    name = parser.identifier("a name") if parser.accept_word("as") else None
    parser.finish()
    return ParsedExpression(text[:end].strip(), name, frozenset(parser.columns), compute)


def tokens(text: str) -> Iterator[tuple[str, str, int]]:
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
        hint="columns, numbers, 'text', TRUE, FALSE, NULL, + - * /, comparisons, AND OR NOT, IN, BETWEEN, "
        "LIKE, IS NULL, CASE WHEN, CAST(… AS …), " + ", ".join(FUNCTIONS),
    )


class _Parser:
    """Reads the tokens of one expression, from left to right."""

    def __init__(self, text: str):
        self.text = text
        self.columns: set[str] = set()
        self.at = 0
        listed = list(tokens(text))
        self.tokens = [(kind, value) for kind, value, _ in listed]
        self.starts = [at for _, _, at in listed]

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

    def any_of(self) -> Compute:
        left = self.all_of()
        while self.accept_word("or"):
            left = _pair(conditions.either, left, self.all_of())
        return left

    def all_of(self) -> Compute:
        left = self.negated()
        while self.accept_word("and"):
            left = _pair(conditions.both, left, self.negated())
        return left

    def negated(self) -> Compute:
        return _of(conditions.negated, self.negated()) if self.accept_word("not") else self.compared()

    def compared(self) -> Compute:
        left = self.sum()
        while sign := self.accept(*_COMPARISONS):
            left = _compared(sign, left, self.sum())
        return self.tested(left)

    def tested(self, left: Compute) -> Compute:
        """Read ``IS NULL``, ``IN``, ``BETWEEN`` or ``LIKE`` behind a value, perhaps with ``NOT``."""
        if self.accept_word("is"):
            negated = self.accept_word("not")
            self.require_word("null")
            found = _of(pc.is_null, left)
        else:
            negated = self.peek(1)[1].lower() in ("in", "between", "like") and self.accept_word("not")
            test = self.test(left)
            if test is None:
                return left
            found = test
        return _of(conditions.negated, found) if negated else found

    def test(self, left: Compute) -> Compute | None:
        if self.accept_word("in"):
            choices = self.arguments()
            if not choices:
                raise self.error("IN has no values")
            equal = [_compared("=", left, each) for each in choices]
            return lambda batch: conditions.any_of([each(batch) for each in equal])
        if self.accept_word("between"):
            low = self.sum()
            self.require_word("and")
            return _pair(conditions.both, _compared(">=", left, low), _compared("<=", left, self.sum()))
        if self.accept_word("like"):
            pattern = self.literal()
            return lambda batch: conditions.like(left(batch), pattern.as_py())
        return None

    def require_word(self, word: str) -> None:
        if not self.accept_word(word):
            raise self.error(f'"{word.upper()}" is missing')

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
            inside = self.any_of()
            self.expect(")")
            return inside
        if kind == "name" and value.lower() in _CONSTANTS:
            self.at += 1
            return _literal(_CONSTANTS[value.lower()])
        if self.accept_word("case"):
            return self.case()
        if kind == "name" and self.peek(1) == ("sign", "("):
            return self.cast() if value.lower() == "cast" else self.call()
        name = self.identifier("a column, a value or a call")
        self.columns.add(name)
        return lambda batch: batch.column(name)

    def case(self) -> Compute:
        branches = list[tuple[Compute, Compute]]()
        while self.accept_word("when"):
            condition = self.any_of()
            self.require_word("then")
            branches.append((condition, self.any_of()))
        if not branches:
            raise self.error('CASE has no "WHEN"')
        other = self.any_of() if self.accept_word("else") else _literal(pa.scalar(None, pa.null()))
        self.require_word("end")
        return lambda batch: conditions.case(
            [(when(batch), then(batch)) for when, then in branches], other(batch)
        )

    def cast(self) -> Compute:
        self.at += 2
        inside = self.any_of()
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
        found = [self.any_of()]
        while self.accept(","):
            found.append(self.any_of())
        self.expect(")")
        return found


def _literal(value: pa.Scalar) -> Compute:
    return lambda batch: pa.repeat(value, len(batch))


def _binary(sign: str, left: Compute, right: Compute) -> Compute:
    return lambda batch: functions.arithmetic(sign, left(batch), right(batch))


def _compared(sign: str, left: Compute, right: Compute) -> Compute:
    return lambda batch: conditions.compare(sign, left(batch), right(batch))


def _pair(compute: Callable[[pa.Array, pa.Array], pa.Array], left: Compute, right: Compute) -> Compute:
    return lambda batch: compute(left(batch), right(batch))


def _of(compute: Callable[[pa.Array], pa.Array], inside: Compute) -> Compute:
    return lambda batch: compute(inside(batch))


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
