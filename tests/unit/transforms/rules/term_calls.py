"""Calls of every operator of the language, for tests that read, write and compute them."""

import random
from collections.abc import Hashable

import numpy as np

from miscompile.core.tensor import Array
from miscompile.transforms.rules.kinds import Symbol, TermType
from miscompile.transforms.rules.proposals import propose
from miscompile.transforms.rules.terms import LANGUAGE, infer

COMPUTED = {op for op in LANGUAGE if op != "Constant"}


def integers(parameter: Hashable) -> tuple[int, ...]:
    """Return a parameter of a symbol that is a tuple of integers."""
    assert isinstance(parameter, tuple)
    assert all(isinstance(number, int) for number in parameter)
    return parameter


def shape(rng: random.Random, ranks: tuple[int, ...] = (0, 1, 2, 2, 3, 3, 4)) -> tuple[int, ...]:
    return tuple(rng.choice((1, 2, 3, 3, 4)) for _ in range(rng.choice(ranks)))


def operands(op: str, dtype: str, rng: random.Random) -> tuple[TermType, ...]:
    """Operands that `op` is likely to take; whether it does is for `infer` to say."""
    n, m, k, c = (rng.choice((1, 2, 3)) for _ in range(4))
    if op == "MatMul":
        batch = tuple(rng.choice((1, 2)) for _ in range(rng.choice((0, 0, 1, 2))))
        left, right = (*batch, n, k), (*batch[rng.randint(0, len(batch)) :], k, m)
        left, right = (left[-1:] if rng.random() < 0.2 else left), (right[-2:-1] if rng.random() < 0.2 else right)
        return TermType(dtype, left), TermType(dtype, right)
    if op == "Gemm":
        third = (TermType(dtype, rng.choice(((), (1,), (n, 1), (m,), (n, m)))),) if rng.random() < 0.7 else ()
        return (
            TermType(dtype, rng.choice(((n, k), (k, n)))), TermType(dtype, rng.choice(((k, m), (m, k)))), *third,
        )  # fmt: skip
    if op in ("Conv", "MaxPool", "AveragePool"):
        sizes = tuple(rng.randint(2, 6) for _ in range(rng.choice((1, 2))))
        data = TermType(dtype, (n, c * m, *sizes))
        if op != "Conv":
            return (data,)
        weight = TermType(dtype, (m * k, c, *[rng.randint(1, 3) for _ in sizes]))
        return (data, weight, TermType(dtype, (m * k,))) if rng.random() < 0.5 else (data, weight)
    if op == "BatchNormalization":
        return (TermType(dtype, (n, c, *shape(rng, (0, 1, 2)))), *[TermType(dtype, (c,))] * 4)
    if op == "Clip":
        return TermType(dtype, shape(rng)), TermType(dtype, ()), TermType(dtype, ())
    base = shape(rng)
    if op == "Concat":
        return tuple(TermType(dtype, base) for _ in range(rng.randint(1, 3)))
    if op == "Where":
        return TermType("bool", base[rng.randint(0, len(base)) :]), TermType(dtype, base), TermType(dtype, base[1:])
    count = LANGUAGE[op].arity or 0
    narrow = tuple(1 if rng.random() < 0.3 else size for size in base)
    return tuple(TermType(dtype, rng.choice((base, narrow, base[1:]))) for _ in range(count))


def call(op: str, rng: random.Random) -> tuple[Symbol, tuple[TermType, ...]] | None:
    dtype = rng.choice(sorted(LANGUAGE[op].dtypes))
    types = operands(op, dtype, rng)
    names = LANGUAGE[op].parameters
    found = propose(op, types, {}, {}, rng) if names else {}
    if found is None:
        return None
    symbol = Symbol(op, tuple(found[name] for name in names), rng.randint(0, 1) if op == "Split" else 0)
    return (symbol, types) if infer(symbol, types) is not None else None


def same(actual: Array, expected: Array, tolerance: float) -> bool:
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return False
    if tolerance:
        a, b = actual.astype(np.float64), expected.astype(np.float64)
        return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * 8, equal_nan=True))
    return bool(np.array_equal(actual, expected))


ROUNDED = {
    "Div", "Reciprocal", "Sqrt", "Exp", "Log", "Sin", "Cos", "Tanh", "Sigmoid", "Softmax", "ReduceMean", "AveragePool",
    "BatchNormalization", "Gemm",
}  # fmt: skip
