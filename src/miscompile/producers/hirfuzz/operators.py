"""The 58 operators of HIRFUZZ (section 4.2.1: 23 of two operands, 35 of one), each encoded in ONNX.

Where ONNX has no single operator the form is a short chain in the motif language, over the operands `a` and `b`; `T` is
the dtype of the operands. Sources: the operator pages of the ONNX documentation and those of Relay.
"""

from collections.abc import Mapping
from functools import cache

from miscompile.base.dtypes import DTYPES, INTEGERS, SIGNED, UNSIGNED, is_float
from miscompile.ops.elementwise import reach
from miscompile.ops.spec import Site
from miscompile.producers.hirfuzz.paper_operator import PaperOperator, Spans, as_onnx

_FLOATS = ("float64", "float32")
_NUMBERS = (*INTEGERS, *_FLOATS)
_BOOL = ("bool",)

HIRFUZZ_DTYPES = (*_NUMBERS, "bool")
"""The paper's eleven element types (Algorithm 1): float16 and bfloat16 are not among them."""

_WIDEST_SHIFT = 3
"""Largest shift: it keeps small values small, and is below the width of every type."""


def _one(name: str, op: str, dtypes: tuple[str, ...], note: str = "") -> PaperOperator:
    """An operator of one operand that ONNX has, perhaps by another name."""
    return PaperOperator(name, 1, (as_onnx(dtypes, f"y = {op}(a)", op),), note)


def _two(name: str, op: str, dtypes: tuple[str, ...], like: str = "", note: str = "") -> PaperOperator:
    """An operator of two operands that ONNX has, perhaps by another name."""
    return PaperOperator(name, 2, (as_onnx(dtypes, f"y = {op}(a, b)", like or op),), note)


def _halves(site: Site) -> Spans:
    """Return ranges for a quotient rounded down: no intermediate result overflows, and the denominator is not zero."""
    half = reach(site.dtype) // 2
    denominator = (1, half) if site.rng.random() < 0.7 else (-half, -2)
    return (-half, half), denominator


def _powers(site: Site) -> Spans:
    """Return ranges of base and exponent of one dtype between which a power is defined and small."""
    return ((0.25, 4.0), (-2.0, 3.0)) if is_float(site.dtype) else ((-100, 100), (0, 4))


def _shifted(site: Site) -> Spans:
    """Return ranges for a shift: signed values so small that nothing is shifted out."""
    most = reach(site.dtype) // 16
    return (None if DTYPES[site.dtype].kind == "uint" else (-most, most)), (0, _WIDEST_SHIFT)


_SIGNED_SHIFT = """
n = Cast(b, to="uint8")
w = BitShift(1, n, direction="LEFT")
p = Cast(w, to=T)
"""
"""2 to the power `b`, whatever the signed type: BitShift is for unsigned ones before opset 26."""

_ROUNDED_DOWN = """
m = Mod(a, {0})
s = Sub(a, m)
y = Div(s, {0})
"""
"""`a` divided by the argument, rounded down: Mod has the sign of the denominator, so `a - m` is a multiple of it."""

_BINARY = (
    _two("Add", "Add", _NUMBERS),
    _two("Subtract", "Sub", _NUMBERS),
    _two("Multiply", "Mul", _NUMBERS),
    _two("Divide", "Div", _NUMBERS, note="integers are cut off toward zero"),
    PaperOperator(
        "Power",
        2,
        (as_onnx((*_FLOATS, "int64", "int32"), "y = Pow(a, b)", spans=_powers),),
        "Pow takes no narrow or unsigned base",
    ),
    PaperOperator(
        "Mod", 2, (as_onnx(_NUMBERS, "y = Mod(a, b, fmod=1)", "Mod"),), "truncated, the sign is the numerator's"
    ),
    PaperOperator(
        "Floor Mod",
        2,
        (
            as_onnx(INTEGERS, "y = Mod(a, b, fmod=0)", "Mod"),
            as_onnx(_FLOATS, "q = Div(a, b)\nf = Floor(q)\nm = Mul(b, f)\ny = Sub(a, m)", "Div"),
        ),
        "Mod without fmod takes no floats",
    ),
    PaperOperator(
        "Floor Divide",
        2,
        (
            as_onnx(_FLOATS, "q = Div(a, b)\ny = Floor(q)", "Div"),
            as_onnx(UNSIGNED, "y = Div(a, b)", "Div"),
            as_onnx(SIGNED, _ROUNDED_DOWN.format("b"), spans=_halves),
        ),
        "Div cuts integers off toward zero",
    ),
    _two("Logical And", "And", _BOOL),
    _two("Logical Or", "Or", _BOOL),
    _two("Logical Xor", "Xor", _BOOL),
    PaperOperator(
        "Bitwise And",
        2,
        (as_onnx(INTEGERS, "y = BitwiseAnd(a, b)", "BitwiseAnd"), as_onnx(_BOOL, "y = And(a, b)", "And")),
        "BitwiseAnd takes no bool",
    ),
    PaperOperator(
        "Bitwise Or",
        2,
        (as_onnx(INTEGERS, "y = BitwiseOr(a, b)", "BitwiseOr"), as_onnx(_BOOL, "y = Or(a, b)", "Or")),
        "BitwiseOr takes no bool",
    ),
    _two("Equal", "Equal", HIRFUZZ_DTYPES),
    PaperOperator("Not Equal", 2, (as_onnx(HIRFUZZ_DTYPES, "e = Equal(a, b)\ny = Not(e)", "Equal"),)),
    _two("Less", "Less", _NUMBERS),
    _two("LessEqual", "LessOrEqual", _NUMBERS),
    _two("Greater", "Greater", _NUMBERS),
    _two("GreaterEqual", "GreaterOrEqual", _NUMBERS),
    _two("Maximum", "Max", _NUMBERS, like="Add"),
    _two("Minimum", "Min", _NUMBERS, like="Add"),
    PaperOperator(
        "Right Shift",
        2,
        (
            as_onnx(UNSIGNED, 'y = BitShift(a, b, direction="RIGHT")', spans=_shifted),
            as_onnx(SIGNED, _SIGNED_SHIFT + _ROUNDED_DOWN.format("p"), spans=_shifted),
        ),
        "signed: over a power of two, rounded down, which is what an arithmetic shift does",
    ),
    PaperOperator(
        "Left Shift",
        2,
        (
            as_onnx(UNSIGNED, 'y = BitShift(a, b, direction="LEFT")', spans=_shifted),
            as_onnx(SIGNED, _SIGNED_SHIFT + "y = Mul(a, p)", spans=_shifted),
        ),
        "signed: times a power of two",
    ),
)

_UNARY = (
    _one("Log", "Log", _FLOATS),
    PaperOperator("Log2", 1, (as_onnx(_FLOATS, "l = Log(a)\ny = Mul(l, 1.4426950408889634)", "Log"),)),
    PaperOperator("Log10", 1, (as_onnx(_FLOATS, "l = Log(a)\ny = Mul(l, 0.4342944819032518)", "Log"),)),
    *(
        _one(op, op, _FLOATS)
        for op in ("Tan", "Tanh", "Cos", "Cosh", "Sin", "Sinh", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh")
    ),
    _one("Exp", "Exp", _FLOATS),
    _one("Erf", "Erf", _FLOATS),
    _one("Sqrt", "Sqrt", _FLOATS),
    PaperOperator(
        "Rsqrt", 1, (as_onnx(_FLOATS, "s = Sqrt(a)\ny = Reciprocal(s)", spans=lambda _: ((1e-3, float("inf")),)),)
    ),
    _one("Sigmoid", "Sigmoid", _FLOATS),
    _one("Floor", "Floor", _FLOATS),
    _one("Ceil", "Ceil", _FLOATS),
    PaperOperator("Trunc", 1, (as_onnx(_FLOATS, "s = Sign(a)\nm = Abs(a)\nf = Floor(m)\ny = Mul(s, f)", "Floor"),)),
    _one("Round", "Round", _FLOATS, "halves go to the even neighbour"),
    _one("Abs", "Abs", _NUMBERS),
    _one("Sign", "Sign", _NUMBERS),
    _one("Negative", "Neg", (*SIGNED, *_FLOATS), "Neg takes no unsigned type"),
    _one("Logical not", "Not", _BOOL),
    PaperOperator(
        "Bitwise not",
        1,
        (as_onnx(INTEGERS, "y = BitwiseNot(a)", "BitwiseNot"), as_onnx(_BOOL, "y = Not(a)", "Not")),
        "BitwiseNot takes no bool",
    ),
    PaperOperator(
        "Zeros Like",
        1,
        (as_onnx(_NUMBERS, "y = Mul(a, 0)", "Abs"), as_onnx(_BOOL, "y = And(a, 0)", "Not")),
        "times zero, so that the result depends on the operand; below zero this gives -0.0",
    ),
    PaperOperator(
        "Ones Like",
        1,
        (as_onnx(_NUMBERS, "z = Mul(a, 0)\ny = Add(z, 1)", "Abs"), as_onnx(_BOOL, "y = Or(a, 1)", "Not")),
        "times zero plus one, so that the result depends on the operand",
    ),
    _one("Copy", "Identity", HIRFUZZ_DTYPES),
    _one("isNan", "IsNaN", _FLOATS, "never true here: no element is NaN"),
    PaperOperator("isFinite", 1, (as_onnx(_FLOATS, "n = IsNaN(a)\ni = IsInf(a)\no = Or(n, i)\ny = Not(o)", "IsNaN"),)),
    PaperOperator("isInf", 1, (as_onnx(_FLOATS, "y = IsInf(a)", "IsNaN"),), "never true here: no element is infinite"),
)

HIRFUZZ_OPERATORS = (*_BINARY, *_UNARY)


@cache
def by_name() -> Mapping[str, PaperOperator]:
    """Return the operators by their names in the paper."""
    return {operator.name: operator for operator in HIRFUZZ_OPERATORS}


@cache
def plain_names() -> Mapping[str, str]:
    """Return the paper's name of each ONNX operator that encodes one of the 58 alone, for any dtype."""
    found: dict[str, str] = {}
    for operator in HIRFUZZ_OPERATORS:
        if len(operator.decompositions) == 1 and len(operator.decompositions[0].steps) == 1:
            found.setdefault(operator.decompositions[0].steps[0].op, operator.name)
    return found
