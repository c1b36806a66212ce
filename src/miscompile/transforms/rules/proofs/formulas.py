"""Formulas of z3 for elements: bit-vectors of the real widths, truth values, and IEEE 754 floats.

Integers wrap around, as in the language's kernels. Floats have one NaN, as in the classes of exactness, and round to
nearest, ties to even. Conversions of floats to integers are undefined beyond the range of the integers, so that no
formula stands for them.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

from miscompile.base.dtypes import DTYPES
from miscompile.transforms.rules.proofs.elements import Element

Formula: TypeAlias = Any
"""A term of z3, whose types a checker does not know where z3 is not installed."""

FORMATS: Mapping[str, tuple[int, int]] = {
    "float16": (5, 11), "bfloat16": (8, 8), "float32": (8, 24), "float64": (11, 53),
}  # fmt: skip
"""Bits of the exponent and of the significand, with its hidden bit."""

_FOLDS = {"ReduceSum": "Add", "ReduceMax": "Max", "ReduceMin": "Min"}
_PLACE_BITS = 64
_MOST_POWER = 14
"""Powers of two whose reciprocals are normal numbers in every format."""

SYMMETRIC = frozenset({"Add", "Sub", "Neg", "Abs", "Max", "Min", "Relu", "ReduceMax", "ReduceMin"})
"""Operators of which the sign of a zero operand changes nothing but the sign of a zero result."""

_NO_POWER = -(1 << 20)


class InexpressibleError(Exception):
    """No formula stands for an operator, or for a constant of its type."""


class Translation:
    """Turns elements to terms of z3; `symmetric` lets zeros differ in sign, where no operator makes more of it."""

    def __init__(self, z3: Any, symmetric: bool = False) -> None:  # noqa: ANN401 - the module
        self._z3 = z3
        self._nearest = z3.RNE()
        self._floats = _Floats(z3, symmetric).table()

    def term(self, element: Element, operands: list[Formula], sorts: list[str]) -> Formula:
        """Return the term of an element, whose operands have element types `sorts`. Raises InexpressibleError."""
        z3 = self._z3
        if element.op == "Variable":
            return z3.Const(f"x{element.parameters[0]}", self._sort(element.sort))
        if element.op == "Constant":
            return self.constant(element.parameters[0], element.sort)
        if element.op == "Cast":
            return self._cast(operands[0], sorts[0], element.sort)
        if element.op == "Where":
            return z3.If(*operands)
        if element.op in _FOLDS:
            return self._fold(_FOLDS[element.op], operands, sorts, element.sort)
        if element.op in ("ArgMax", "ArgMin"):
            return self._place(element, operands, sorts[0])
        return self._operator(element.op, operands, sorts[0])

    def _sort(self, dtype: str) -> Formula:
        if dtype == "bool":
            return self._z3.BoolSort()
        return self._z3.FPSort(*FORMATS[dtype]) if dtype in FORMATS else self._z3.BitVecSort(DTYPES[dtype].bits)

    def constant(self, value: object, dtype: str) -> Formula:
        """Return a number as a term. Raises InexpressibleError where the element type lacks it."""
        if dtype == "bool":
            return self._z3.BoolVal(bool(value))
        if not isinstance(value, int | float):
            raise InexpressibleError
        if dtype in FORMATS:
            return self._z3.FPVal(float(value), self._sort(dtype))
        if not float(value).is_integer():
            raise InexpressibleError
        return self._z3.BitVecVal(int(value), DTYPES[dtype].bits)

    def _cast(self, value: Formula, source: str, target: str) -> Formula:
        z3 = self._z3
        if source == target:
            return value
        if source == "bool":
            return z3.If(value, self.constant(1, target), self.constant(0, target))
        if target == "bool":
            return z3.Not(z3.fpIsZero(value)) if source in FORMATS else value != 0
        signed = DTYPES[source].kind == "int"
        if source in FORMATS:
            if target not in FORMATS:
                raise InexpressibleError
            return z3.fpFPToFP(self._nearest, value, self._sort(target))
        if target in FORMATS:
            convert = z3.fpSignedToFP if signed else z3.fpUnsignedToFP
            return convert(self._nearest, value, self._sort(target))
        return self._resized(value, signed, DTYPES[target].bits - DTYPES[source].bits)

    def _resized(self, value: Formula, signed: bool, more: int) -> Formula:
        z3 = self._z3
        if more <= 0:
            return z3.Extract(value.size() + more - 1, 0, value)
        return z3.SignExt(more, value) if signed else z3.ZeroExt(more, value)

    def _fold(self, op: str, operands: list[Formula], sorts: list[str], dtype: str) -> Formula:
        """Return the reduction, one operand after another; a sum of floats has no order of its own."""
        if dtype in FORMATS and op == "Add" and len(operands) > 1:
            raise InexpressibleError
        if not operands:
            return self.constant(0, dtype)
        return reduce(lambda first, second: self._operator(op, [first, second], sorts[0]), operands)

    def _place(self, element: Element, operands: list[Formula], dtype: str) -> Formula:
        if dtype in FORMATS:
            raise InexpressibleError
        z3, last = self._z3, bool(element.parameters[0])
        best, place = operands[0], z3.BitVecVal(0, _PLACE_BITS)
        for number, operand in enumerate(operands[1:], 1):
            pair = [best, operand] if element.op == "ArgMax" else [operand, best]
            better = self._operator("LessOrEqual" if last else "Less", pair, dtype)
            best, place = z3.If(better, operand, best), z3.If(better, z3.BitVecVal(number, _PLACE_BITS), place)
        return place

    def _operator(self, op: str, operands: list[Formula], dtype: str) -> Formula:
        z3 = self._z3
        if op in ("Max", "Min"):
            return self._extreme(op, operands, dtype)
        if op == "Relu":
            zero = self.constant(0, dtype)
            return z3.If(self._operator("Less", [operands[0], zero], dtype), zero, operands[0])
        if op == "Sign":
            return self._sign(operands[0], dtype)
        if dtype in FORMATS:
            table = self._floats
        elif dtype == "bool":
            table = _truth_table(z3)
        else:
            table = _integer_table(z3, DTYPES[dtype].kind == "int")
        if op not in table:
            raise InexpressibleError
        return table[op](*operands)

    def _extreme(self, op: str, operands: list[Formula], dtype: str) -> Formula:
        """Return the greater or lesser of two; of equal ones (zeros) the first, and a NaN where there is one."""
        z3, (first, second) = self._z3, operands
        order = [first, second] if op == "Max" else [second, first]
        found = z3.If(self._operator("Less", order, dtype), second, first)
        if dtype in FORMATS:
            found = z3.If(z3.fpIsNaN(first), first, z3.If(z3.fpIsNaN(second), second, found))
        elif op == "Min":
            # The same condition as that of the maximum, so that both choose by it.
            found = z3.If(self._operator("Less", operands, dtype), first, second)
        return found

    def _sign(self, value: Formula, dtype: str) -> Formula:
        z3, zero, one = self._z3, self.constant(0, dtype), self.constant(1, dtype)
        if dtype in FORMATS:
            rest = z3.If(z3.fpIsZero(value), zero, value)
            below = z3.If(z3.fpLT(value, zero), self.constant(-1, dtype), rest)
            return z3.If(z3.fpGT(value, zero), one, below)
        if DTYPES[dtype].kind == "uint":
            return z3.If(value == zero, zero, one)
        return z3.If(value > zero, one, z3.If(value == zero, zero, self.constant(-1, dtype)))


FormulaTable: TypeAlias = Mapping[str, Callable[..., Formula]]


def _integer_table(z3: Any, signed: bool) -> FormulaTable:  # noqa: ANN401 - the module
    return {
        "Add": lambda x, y: x + y,
        "Sub": lambda x, y: x - y,
        "Mul": lambda x, y: x * y,
        "Neg": lambda x: -x,
        "Abs": lambda x: z3.If(x < 0, -x, x) if signed else x,
        "BitwiseNot": lambda x: ~x,
        "BitwiseAnd": lambda x, y: x & y,
        "BitwiseOr": lambda x, y: x | y,
        "BitwiseXor": lambda x, y: x ^ y,
        "Equal": lambda x, y: x == y,
        "Less": lambda x, y: x < y if signed else z3.ULT(x, y),
        "Greater": lambda x, y: y < x if signed else z3.ULT(y, x),
        "LessOrEqual": lambda x, y: x <= y if signed else z3.ULE(x, y),
        "GreaterOrEqual": lambda x, y: y <= x if signed else z3.ULE(y, x),
    }


def _truth_table(z3: Any) -> FormulaTable:  # noqa: ANN401 - the module
    return {
        "Not": z3.Not,
        "And": z3.And,
        "Or": z3.Or,
        "Xor": z3.Xor,
        "Equal": lambda x, y: x == y,
    }


class _Floats:
    """Operators of IEEE 754, with terms that its laws make equal written in one form.

    x - y is x + (-y); sums and products do not depend on the order of their two operands; signs of operands do not
    change the magnitude of products and quotients; a factor of 1 changes nothing, a factor of 2 is a sum, and a divisor
    that is a power of two is the factor that is its reciprocal. The solver would have to compare circuits that
    multiply.
    """

    def __init__(self, z3: Any, symmetric: bool) -> None:  # noqa: ANN401 - the module
        self._z3 = z3
        self._nearest = z3.RNE()
        self._symmetric = symmetric

    def table(self) -> FormulaTable:
        z3 = self._z3
        return {
            "Add": self._sum,
            "Sub": lambda x, y: self._sum(x, self._negative(y)),
            "Mul": self._product,
            "Div": self._quotient,
            "Neg": self._negative,
            "Abs": self._magnitude,
            "Sqrt": lambda x: z3.fpSqrt(self._nearest, x),
            "Reciprocal": lambda x: self._quotient(z3.FPVal(1.0, x.sort()), x),
            "Floor": lambda x: z3.fpRoundToIntegral(z3.RTN(), x),
            "Ceil": lambda x: z3.fpRoundToIntegral(z3.RTP(), x),
            "Equal": z3.fpEQ,
            "Less": z3.fpLT,
            "Greater": z3.fpGT,
            "LessOrEqual": z3.fpLEQ,
            "GreaterOrEqual": z3.fpGEQ,
        }

    def _is(self, value: Formula, kind: str) -> bool:
        return bool(self._z3.is_app_of(value, getattr(self._z3, f"Z3_OP_FPA_{kind}")))

    def _sum(self, x: Formula, y: Formula) -> Formula:
        bare = [v.arg(0) if self._is(v, "NEG") else v for v in (x, y)]
        (_, first), (_, second) = sorted(zip(bare, (x, y), strict=True), key=lambda pair: _number_of(pair[0]))
        if self._symmetric and self._is(first, "NEG"):
            # Rounding to nearest is symmetric: -x - y is -(x + y), but for the sign of a zero.
            return self._negative(self._z3.fpAdd(self._nearest, first.arg(0), self._negative(second)))
        return self._z3.fpAdd(self._nearest, first, second)

    def _negative(self, value: Formula) -> Formula:
        return value.arg(0) if self._is(value, "NEG") else self._z3.fpNeg(value)

    def _unsigned(self, *operands: Formula) -> tuple[list[Formula], bool]:
        """Return operands without negations, and whether the product of their signs is negative."""
        bare, minus = [], False
        for operand in operands:
            constant = self._z3.is_fp_value(operand) and operand.isNormal() and operand.isNegative()
            if constant or self._is(operand, "NEG"):
                minus = not minus
                operand = self._z3.simplify(self._z3.fpNeg(operand)) if constant else operand.arg(0)
            bare.append(operand)
        return bare, minus

    def _product(self, x: Formula, y: Formula) -> Formula:
        bare, minus = self._unsigned(x, y)
        first, second = sorted(bare, key=self._power)
        found = self._z3.fpMul(self._nearest, *sorted(bare, key=_number_of))
        if self._power(second) in (0, 1):
            found = self._sum(first, first) if self._power(second) else first
        return self._negative(found) if minus else found

    def _power(self, value: Formula) -> int:
        """Return the number n of a constant 2**n, or one below all of them."""
        if not self._z3.is_fp_value(value) or not value.isNormal() or value.isNegative():
            return _NO_POWER
        fraction = self._z3.simplify(self._z3.fpToReal(value)).as_fraction()
        power = fraction.numerator.bit_length() - fraction.denominator.bit_length()
        return power if fraction == Fraction(2) ** power else _NO_POWER

    def _quotient(self, x: Formula, y: Formula) -> Formula:
        power = self._power(y)
        if -_MOST_POWER <= power <= _MOST_POWER:
            return self._product(x, self._z3.FPVal(2.0**-power, y.sort()))
        bare, minus = self._unsigned(x, y)
        found = self._z3.fpDiv(self._nearest, *bare)
        return self._negative(found) if minus else found

    def _magnitude(self, value: Formula) -> Formula:
        if self._is(value, "NEG") or self._is(value, "ABS"):
            return self._magnitude(value.arg(0)) if self._is(value, "NEG") else value
        if self._is(value, "MUL"):
            return self._product(self._magnitude(value.arg(1)), self._magnitude(value.arg(2)))
        if self._is(value, "DIV"):
            return self._quotient(self._magnitude(value.arg(1)), self._magnitude(value.arg(2)))
        return self._z3.fpAbs(value)


def _number_of(value: Formula) -> int:
    """Return a number by which the operands of a commutative operator are put in one order."""
    return int(value.get_id())
