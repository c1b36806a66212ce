"""Proofs of rules: what they claim holds, the mutants that no trial rejects are proved, and unsound rules are not."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from rule_mutants import HARMLESS, mutants

from miscompile.base.dtypes import FLOATS
from miscompile.base.rng import array_stream, stream
from miscompile.core.tensor import Array
from miscompile.transforms.rules.certify import certify
from miscompile.transforms.rules.kinds import ELEMENTS
from miscompile.transforms.rules.library import library
from miscompile.transforms.rules.numbers import drawn
from miscompile.transforms.rules.parse import parse_rules
from miscompile.transforms.rules.proofs import solver
from miscompile.transforms.rules.proofs.elements import ElementTable, Obligation, obligation
from miscompile.transforms.rules.proofs.floats import Points, values_of_elements
from miscompile.transforms.rules.proofs.prove import RuleProof, prove
from miscompile.transforms.rules.proofs.symbolic import lifted
from miscompile.transforms.rules.rule import Rule, values_of, variables
from miscompile.transforms.rules.specimens import dtypes_of, specimen

RULES = {rule.name: rule for rule in library()}
UNSOUND = {
    rule.name: rule for rule in parse_rules(Path(__file__).with_name("unsound.toml").read_text("utf-8"), "unsound.toml")
}
needs_z3 = pytest.mark.skipif(find_spec("z3") is None, reason="z3 is not installed")


def written(left: str, right: str, exactness: str = "bits", dtypes: str = "number", more: str = "") -> Rule:
    text = f"""[[rule]]
name = "candidate"
group = "test"
left = "{left}"
right = "{right}"
exactness = "{exactness}"
dtypes = "{dtypes}"
source = "test"
kind = "structural"
{more}"""
    return parse_rules(text, "test.toml")[0]


def quick(rule: Rule) -> RuleProof:
    return prove(rule, most=20, explored=1)


@needs_z3
def test_every_mutant_that_passes_the_trials_is_proved() -> None:
    passed = 0
    for rule in library():
        for what, mutant in mutants(rule):
            if certify(mutant, 80, 1).accepted:
                passed += 1
                proof = quick(mutant)
                assert (rule.name, what) in HARMLESS
                assert proof.status in ("proved", "exact on a domain"), (rule.name, what, proof.text)
                assert proof.integers in ("", "proved"), (rule.name, what, proof.text)
                assert "evaluated, not proved" not in proof.reason, (rule.name, what)
    assert passed == 15


@needs_z3
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_no_rule_with_a_mistake_is_proved(part: int) -> None:
    """A third of the rules, in four parts: a proof of what a trial has a counterexample to would be wrong."""
    rejected = 0
    for rule in library()[part * 3 :: 12]:
        for what, mutant in mutants(rule):
            if not certify(mutant, 80, 1).accepted:
                rejected += 1
                proof = prove(mutant, 24, explored=0)
                assert proof.status in ("refuted", "tested only"), (rule.name, what, proof.text)
                assert proof.status == "refuted" or rule.exactness == "rounding", (rule.name, what, proof.text)
    assert rejected > 40


OVERFLOWING = {"naive-softmax-overflows", "square-root-of-a-square"}
"""Rules that hold in exact arithmetic: the certifier rejects them because their right side overflows."""


@pytest.mark.parametrize("name", sorted(UNSOUND))
def test_no_unsound_rule_is_proved(name: str) -> None:
    proof = quick(UNSOUND[name])
    if name in OVERFLOWING:
        assert proof.status in ("exact on a domain", "tested only")
        assert {"overflow"} <= {why for why, _ in proof.exceptions}
    elif find_spec("z3") is not None:
        assert proof.status == "refuted", proof.text
    else:
        assert proof.status != "proved"


@needs_z3
@pytest.mark.parametrize(
    ("name", "integers", "floats", "exceptions"),
    [
        ("Add-commutes", "proved", "proved", ()),
        ("Add-as-bits", "proved", "", ()),
        ("Mul-of-Max-and-Min", "proved", "exact on a domain", None),
        ("De-Morgan-And", "proved", "", ()),
        ("Where-as-Mul", "proved", "", ()),
        ("Concat-transposed", "proved", "proved", ()),
        ("Add-zero", "proved", "exact on a domain", ("signed zeros",)),
        ("Max-over-Min", "proved", "proved", None),
        ("ReduceMax-split", "proved", None, None),
        ("Conv-of-Add", "", "exact on a domain", None),
        ("MatMul-associates", "proved", "exact on a domain", None),
        ("Softmax-shifted", "", "exact on a domain", None),
        ("Mul-one", "proved", "proved", ()),
    ],
)  # fmt: skip
def test_what_is_proved(name: str, integers: str, floats: str | None, exceptions: tuple[str, ...] | None) -> None:
    proof = quick(RULES[name])
    assert proof.integers == integers
    assert floats is None or proof.floats == floats, proof.text
    assert exceptions is None or tuple(why for why, _ in proof.exceptions) == exceptions


def test_rules_that_move_elements_need_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "installed", lambda: False)
    solver.decided.cache_clear()
    moved = quick(RULES["make-Concat-of-Splits"])
    assert (moved.status, moved.methods) == ("proved", ("identical operations",))
    assert set(moved.dtypes) == {*ELEMENTS}
    assert quick(RULES["Max-over-Min"]).integers == "proved"
    lost = quick(RULES["Add-as-bits"])
    solver.decided.cache_clear()
    assert lost.status == "tested only"
    assert "without proof" in lost.reason


@needs_z3
def test_a_counterexample_names_values_types_and_parameters() -> None:
    proof = quick(written("Max(x, y)", "Neg(Min(Neg(x), Neg(y)))", "bits", "int64"))
    assert re.search(r"differ for int64 -?\d+, int64 -?\d+: .*; where x: int64\[", proof.text)
    assert str(-(2**63)) in proof.text
    lone = quick(written("BitwiseAnd(x, Constant(dtype=x.dtype, shape=(), value=3))", "x", "bits", "uint64"))
    assert lone.status == "refuted"
    ill = quick(written("Where(c, x, x)", "x", "bits", "any"))
    assert "the right side has type" in ill.text
    broken = quick(written("x", "Transpose(x, perm=swap(x.rank, 0, 1))"))
    assert "IndexError" in broken.text
    nowhere = quick(written("Add(x, y)", "Add(y, x)", more='where = "x.rank > 9"'))
    assert nowhere.text == "tested only: no instance of its left side is small enough"


def test_nothing_is_proved_of_tensors_without_elements() -> None:
    proof = quick(written("Neg(x)", "Abs(x)", "bits", "signed", 'where = "x.size == 0"'))
    assert proof.text == "tested only: no instance of its left side has elements"


def test_different_sums_are_refuted_in_exact_arithmetic() -> None:
    proof = quick(written("x", "Mul(x, Constant(dtype=x.dtype, shape=(), value=1.0001))", "rounding", "float"))
    assert (proof.status, "exact arithmetic" in proof.reason) == ("refuted", True)
    third = "Mul(Mul(x, Constant(dtype=x.dtype, shape=(), value=1 / 3)), Constant(dtype=x.dtype, shape=(), value=3))"
    assert quick(written("x", third, "rounding", "float")).status == "exact on a domain"


def test_proofs_are_the_same_each_time() -> None:
    assert quick(RULES["Slice-twice"]) == quick(RULES["Slice-twice"])


@pytest.mark.parametrize("part", range(4))
def test_symbolic_elements_have_the_values_of_the_kernels(part: int) -> None:
    """On small integers, where no order of summation matters."""
    compared = 0
    for rule in library()[part::16]:
        for dtype in dtypes_of(rule)[part % 2 : 6 : 3]:
            environment = specimen(rule, dtype, stream(part, rule.name, dtype), 30)
            if environment is None or sum(np.prod(environment[n].shape) for n in variables(rule.left)) > 400:
                continue
            arrays = {n: drawn(environment[n], "small", array_stream(0, rule.name, n)) for n in variables(rule.left)}
            table, numbers = ElementTable(), {}
            points: list[Array] = []
            for name, array in arrays.items():
                sort = environment[name].dtype
                ids = [table.add("Variable", sort, (), (len(points) + place,)) for place in range(array.size)]
                points.extend(array.reshape(-1)[place : place + 1] for place in range(array.size))
                numbers[name] = np.array(ids, np.int64).reshape(array.shape)
            found = lifted(rule.left, environment, numbers, table, {})
            expected = values_of(rule.left, environment, arrays)[-1]
            assert found.shape == expected.shape
            for number, value in zip(found.reshape(-1)[:20].tolist(), expected.reshape(-1)[:20], strict=True):
                whole = Obligation(tuple(table[i] for i in range(number + 1)), number, number)
                actual = values_of_elements(whole, Points(expected.dtype, tuple(points)), 1)[number].reshape(-1)[0]
                assert actual.dtype == expected.dtype
                np.testing.assert_allclose(float(actual), float(value), rtol=2e-2, err_msg=rule.name)
            compared += 1
    assert compared > 40


def one(op: str, dtypes: tuple[str, ...], sort: str) -> Obligation:
    table = ElementTable()
    operands = tuple(table.add("Variable", dtype, (), (place,)) for place, dtype in enumerate(dtypes))
    number = table.add(op, sort, operands, (0,) if op in ("ArgMax", "ArgMin") else ())
    return obligation(table, number, number)


TRANSLATED = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min"), ("int8", "uint16", "int64", "uint64", *FLOATS)),
    **dict.fromkeys(("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"), ("int8", "uint64", *FLOATS)),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "ArgMax", "ArgMin"), ("int8", "uint64")),
    **dict.fromkeys(("And", "Or", "Xor"), ("bool",)),
    **dict.fromkeys(("Neg", "Abs", "Sign", "Relu"), ("int8", "int64", *FLOATS)),
    **dict.fromkeys(("Div",), FLOATS),
    **dict.fromkeys(("Floor", "Ceil", "Sqrt", "Reciprocal"), FLOATS),
    "Not": ("bool",),
    "BitwiseNot": ("int16", "uint32"),
}
UNARY = {"Neg", "Abs", "Sign", "Relu", "Floor", "Ceil", "Sqrt", "Reciprocal", "Not", "BitwiseNot"}
TRUTHS = {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}
VALUES = (0, 1, -1, 2, 3, 100, -100, 0.1, -0.0, 1e-7, -1e-40, 6e4, float("inf"), float("-inf"), float("nan"))


@needs_z3
@pytest.mark.parametrize("op", sorted(TRANSLATED))
def test_formulas_have_the_values_of_the_kernels(op: str) -> None:
    import z3

    from miscompile.transforms.rules.proofs.formulas import Translation

    rng = array_stream(3, op)
    for dtype in TRANSLATED[op]:
        sort = "bool" if op in TRUTHS else "int64" if op.startswith("Arg") else dtype
        count = 1 if op in UNARY else 2
        stated = one(op, (dtype,) * count, sort)
        info = None if ELEMENTS[dtype].kind not in "iu" else np.iinfo(ELEMENTS[dtype])
        for _ in range(25):
            chosen = [rng.choice(VALUES) for _ in range(count)]
            if info is not None:
                chosen = [rng.choice([info.min, info.max, 0, 1, 7]) for _ in range(count)]
            with np.errstate(all="ignore"):
                values = tuple(np.array([value]).astype(ELEMENTS[dtype]) for value in chosen)
            expected = values_of_elements(stated, Points(ELEMENTS[dtype], values), 1)[-1].reshape(-1)[0]
            translation = Translation(z3)
            numbers = [value[0].item() if info is not None or dtype == "bool" else float(value[0]) for value in values]
            terms = [translation.constant(number, dtype) for number in numbers]
            term = z3.simplify(translation.term(stated.elements[-1], terms, [dtype] * count))
            actual = solver.number(z3, term, sort)
            if op in ("Max", "Min", "Relu", "Sign") and expected == 0:
                expected, actual = abs(expected), abs(actual)  # either zero
            assert repr(float(actual)) == repr(float(expected)), (op, dtype, chosen)
