"""Numbers added without loss: integers in two halves, decimals in wider ones, floats digit by digit.

What a partial sum looks like depends on the type of the column, and is told by the columns it is
stored in; so those who merge and finish need not know the type.

Invariant: a stored amount is the exact sum of its values, and how many they are; so it depends on no
order. Whether it fits the type of the result is asked only when all is added: what overflows on the
way and comes back is no error.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import UsageError
from headwater.operators.aggregates import digits
from headwater.operators.aggregates.aggregate import is_integer
from headwater.operators.aggregates.by_group import added, reduced
from headwater.operators.groups import Numbers

_HALF = 32
_LOW = np.int64((1 << _HALF) - 1)
_WIDE = 76
_DIGITS = 38
_NAN, _PLUS, _MINUS = 1, 2, 4
_MORE = 4
"""How many decimal places a mean has more than its values, as in Spark."""


class Amount(ABC):
    """How the numbers of one kind of type are added. The first column of all is how many they are."""

    @abstractmethod
    def total_type(self, kind: pa.DataType) -> pa.DataType:
        """Return the type of a sum of values of a type."""

    @abstractmethod
    def mean_type(self, kind: pa.DataType) -> pa.DataType:
        """Return the type of a mean of values of a type."""

    @abstractmethod
    def fields(self, name: str, kind: pa.DataType) -> list[pa.Field]:
        """Return the columns of a partial sum, without the count."""

    @abstractmethod
    def partial(self, values: pa.Array, groups: Numbers, count: int) -> list[pa.Array]:
        """Return the sum of the values of each group, of which none is null."""

    @abstractmethod
    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Return what partial sums come to by group."""

    @abstractmethod
    def totals(self, counts: Numbers, partials: list[pa.Array]) -> pa.Array:
        """Return the sums; null where nothing was added."""

    @abstractmethod
    def means(self, counts: Numbers, partials: list[pa.Array]) -> pa.Array:
        """Return the means; null where nothing was added."""

    @abstractmethod
    def shares(self, counts: Numbers, partials: list[pa.Array], share: Fraction) -> pa.Array:
        """Return the nearest DOUBLE of a share of each sum; null where nothing was added."""


class DoubleMeans(Amount):
    """Numbers whose means and shares are the nearest DOUBLE: each a sum, times a number, over another."""

    def mean_type(self, kind: pa.DataType) -> pa.DataType:
        """Return DOUBLE."""
        return pa.float64()

    def means(self, counts: Numbers, partials: list[pa.Array]) -> pa.Array:
        """Return the nearest DOUBLE of each mean."""
        return self._quotients(counts, partials, 1, counts)

    def shares(self, counts: Numbers, partials: list[pa.Array], share: Fraction) -> pa.Array:
        """Return the nearest DOUBLE of each share."""
        return self._quotients(counts, partials, share.numerator, _divisors(counts, share))

    @abstractmethod
    def _quotients(
        self, counts: Numbers, partials: list[pa.Array], times: int, divisors: Numbers
    ) -> pa.Array:
        """Return each sum times a number, over its divisor; null where nothing was added."""


class Integers(DoubleMeans):
    """Integers, as high * 2**32 + low: each half adds up far from overflowing."""

    def total_type(self, kind: pa.DataType) -> pa.DataType:
        """Return BIGINT."""
        return pa.int64()

    def fields(self, name: str, kind: pa.DataType) -> list[pa.Field]:
        """Return both halves."""
        return [pa.field(f"{name}.high", pa.int64()), pa.field(f"{name}.low", pa.int64())]

    def partial(self, values: pa.Array, groups: Numbers, count: int) -> list[pa.Array]:
        """Add whole numbers at once where their size allows it, else by halves."""
        whole = values.cast(pa.int64()).to_numpy()
        greatest = max(int(whole.max(initial=0)), -int(whole.min(initial=0)))
        if greatest * len(whole) < 1 << 63:
            sums = added(whole, groups, count)
            return [pa.array(sums >> _HALF), pa.array(sums & _LOW)]
        return _carried(added(whole >> _HALF, groups, count), added(whole & _LOW, groups, count))

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Add the halves."""
        high, low = (added(half.to_numpy(), groups, count) for half in partials)
        return _carried(high, low)

    def totals(self, counts: Numbers, partials: list[pa.Array]) -> pa.Array:
        """Return the sums as BIGINT, or refuse one that is too large."""
        high, low = (half.to_numpy() for half in partials)
        if ((high >= 1 << (_HALF - 1)) | (high < -1 << (_HALF - 1))).any():
            raise UsageError(
                "a sum of integers does not fit BIGINT", hint="cast the column to DECIMAL(38,0) before"
            )
        return pa.array((high << _HALF) | low, mask=counts == 0)

    def _quotients(
        self, counts: Numbers, partials: list[pa.Array], times: int, divisors: Numbers
    ) -> pa.Array:
        # Python divides integers of any size and rounds once; a group is finished once.
        halves = zip(
            *(half.to_pylist() for half in partials), counts.tolist(), divisors.tolist(), strict=True
        )
        quotients = [
            ((high << _HALF) + low) * times / divisor if count else None
            for high, low, count, divisor in halves
        ]
        return pa.array(quotients, pa.float64())


class Decimals(Amount):
    """Decimals, in decimals of 76 digits: room for more values than there can be."""

    def total_type(self, kind: pa.DataType) -> pa.DataType:
        """Return DECIMAL of 38 digits and as many places."""
        return pa.decimal128(_DIGITS, kind.scale)

    def mean_type(self, kind: pa.DataType) -> pa.DataType:
        """Return DECIMAL of 38 digits and four more places."""
        return pa.decimal128(_DIGITS, min(kind.scale + _MORE, _DIGITS))

    def fields(self, name: str, kind: pa.DataType) -> list[pa.Field]:
        """Return the sum."""
        return [pa.field(f"{name}.sum", pa.decimal256(_WIDE, kind.scale))]

    def partial(self, values: pa.Array, groups: Numbers, count: int) -> list[pa.Array]:
        """Add the values."""
        return self.merge([values.cast(pa.decimal256(_WIDE, values.type.scale))], groups, count)

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Add the sums."""
        return [reduced(partials[0], groups, count, "sum")]

    def totals(self, counts: Numbers, partials: list[pa.Array]) -> pa.Array:
        """Return the sums, or refuse one that is too large."""
        return _fitting("sum", partials[0], self.total_type(partials[0].type))

    def means(self, counts: Numbers, partials: list[pa.Array]) -> pa.Array:
        """Return the means, a half rounded away from zero as Spark does."""
        out = self.mean_type(partials[0].type)
        unit, context = Decimal(1).scaleb(-out.scale), Context(prec=2 * _WIDE, rounding=ROUND_HALF_UP)
        means = [
            None if total is None else context.quantize(context.divide(total, Decimal(count)), unit)
            for total, count in zip(partials[0].to_pylist(), counts.tolist(), strict=True)
        ]
        return _fitting("mean", pa.array(means, pa.decimal256(_WIDE, out.scale)), out)

    def shares(self, counts: Numbers, partials: list[pa.Array], share: Fraction) -> pa.Array:
        """Return the nearest DOUBLE of each share."""
        sums = partials[0].to_pylist()
        return pa.array(
            [None if total is None else float(Fraction(total) * share) for total in sums], pa.float64()
        )


class Floats(DoubleMeans):
    """Floats, digit by digit; what is not finite is remembered by a flag for each kind of it."""

    def total_type(self, kind: pa.DataType) -> pa.DataType:
        """Return DOUBLE."""
        return pa.float64()

    def fields(self, name: str, kind: pa.DataType) -> list[pa.Field]:
        """Return the flags, and the sum."""
        return [pa.field(f"{name}.flags", pa.int8()), *digits.fields(name)]

    def partial(self, values: pa.Array, groups: Numbers, count: int) -> list[pa.Array]:
        """Add the finite values, and flag the others."""
        floats, finite, flags = sorted_out(values, groups, count)
        return [flags, *digits.stored(digits.summed(floats, finite, count))]

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Add the sums, and unite the flags."""
        flags = united(partials[0], groups, count)
        return [flags, *digits.stored(digits.merged(partials[1:], groups, count))]

    def totals(self, counts: Numbers, partials: list[pa.Array]) -> pa.Array:
        """Return the nearest DOUBLE of each sum."""
        return self._quotients(counts, partials, 1, np.ones(len(counts), np.int64))

    def _quotients(
        self, counts: Numbers, partials: list[pa.Array], times: int, divisors: Numbers
    ) -> pa.Array:
        sums = digits.numbers(partials[1:])
        quotients = [
            _odd(flags) if flags else digits.ratio(number * times, exponent, divisor) if count else None
            for flags, (number, exponent), divisor, count in zip(
                partials[0].to_pylist(), sums, divisors.tolist(), counts.tolist(), strict=True
            )
        ]
        return pa.array(quotients, pa.float64())


def amount(kind: pa.DataType) -> Amount:
    """Return how values of a type are added."""
    if pa.types.is_decimal(kind):
        return Decimals()
    return Integers() if is_integer(kind) else Floats()


def amount_of(partials: list[pa.Array]) -> Amount:
    """Return how partial sums, without their count, were added."""
    return amount(partials[0].type) if len(partials) < 3 else Floats()


def sorted_out(values: pa.Array, groups: Numbers, count: int) -> tuple[digits.Floats, Numbers, pa.Array]:
    """Return the finite floats with their groups, and the flags of each group."""
    floats = doubles(values)
    finite = np.isfinite(floats)
    if finite.all():
        return floats, groups, pa.array(np.zeros(count, np.int8))
    rest = floats[~finite]
    kinds = np.where(np.isnan(rest), _NAN, np.where(rest > 0, _PLUS, _MINUS))
    return floats[finite], groups[finite], united(pa.array(kinds), groups[~finite], count)


def doubles(values: pa.Array) -> digits.Floats:
    """Return the nearest DOUBLE of each number."""
    if pa.types.is_decimal(values.type):
        # Arrow's own cast of decimals may miss the nearest one; reading their text does not.
        values = values.cast(pa.string()).cast(pa.float64())
    return np.asarray(values.to_numpy(), np.float64)


def united(flags: pa.Array, groups: Numbers, count: int) -> pa.Array:
    """Return all flags of each group."""
    all_flags = np.zeros(count, np.int8)
    np.bitwise_or.at(all_flags, groups, flags.to_numpy().astype(np.int8))
    return pa.array(all_flags)


def _odd(flags: int) -> float:
    """Return the sum of values that are not all finite."""
    return {_PLUS: math.inf, _MINUS: -math.inf}.get(flags, math.nan)


def _divisors(counts: Numbers, share: Fraction) -> Numbers:
    return np.full(len(counts), share.denominator)


def _carried(high: Numbers, low: Numbers) -> list[pa.Array]:
    return [pa.array(high + (low >> _HALF)), pa.array(low & _LOW)]


def _fitting(what: str, values: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return pc.cast(values, kind)
    except pa.ArrowInvalid:
        raise UsageError(
            f"a {what} of decimals does not fit DECIMAL({kind.precision},{kind.scale})",
            hint="cast the column to a DECIMAL of fewer places before",
        ) from None
