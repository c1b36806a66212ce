"""Questions to the SMT solver z3: does an obligation hold for all values of its variables?

z3 is an optional extra (`miscompile[proofs]`) and is imported on first use. The effort of a question is bounded in
steps of the solver, not in seconds, so that the answers are the same on every machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import Any, Literal

from miscompile.base.dtypes import DTYPES
from miscompile.transforms.rules.proofs.elements import Obligation
from miscompile.transforms.rules.proofs.formulas import FORMATS, SYMMETRIC, Formula, InexpressibleError, Translation

SolverAnswer = Literal["proved", "refuted", "open"]
"""Equal for all values | there is a counterexample | not decided within the effort, or not expressible."""

_EFFORT = 1_500_000
_EFFORT_ON_FLOATS = 400_000
_MOST_SPLITS = 5


@dataclass(frozen=True, slots=True)
class SolverVerdict:
    """The solver's answer; `values` holds a counterexample, a number for each variable."""

    answer: SolverAnswer
    values: tuple[int | float | bool, ...] = ()


OPEN = SolverVerdict("open")


def installed() -> bool:
    """Tell whether z3 can be imported."""
    return find_spec("z3") is not None


@cache
def decided(stated: Obligation, zeros: bool) -> SolverVerdict:
    """Return whether a typed obligation holds for all values of its variables; `zeros` lets zeros differ in sign.

    Open where z3 is not installed.
    """
    if not installed():
        return OPEN
    import z3

    translation = Translation(z3, zeros and stated.operators <= SYMMETRIC)
    values: list[Formula] = []
    try:
        for element in stated.elements:
            operands = [values[child] for child in element.children]
            sorts = [stated.elements[child].sort for child in element.children]
            values.append(translation.term(element, operands, sorts))
    except InexpressibleError:
        return OPEN
    left, right = values[stated.left], values[stated.right]
    same = z3.Or(left == right, z3.fpEQ(left, right)) if zeros and z3.is_fp(left) else left == right
    floats = any(element.sort in FORMATS for element in stated.elements)
    return _answered(z3, z3.Not(same), stated, values, floats)


def _answered(
    z3: Any,  # noqa: ANN401 - the module, which a checker may not find
    question: Formula,
    stated: Obligation,
    values: Sequence[Formula],
    floats: bool,
) -> SolverVerdict:
    """Ask for a counterexample, case by case of what the selections depend on; ring laws simplify each case first."""
    cases = _conditions(z3, values)
    if floats or len(cases) > _MOST_SPLITS:
        cases = []
    for truths in product((True, False), repeat=len(cases)):
        chosen = list(zip(cases, truths, strict=True))
        replaced = [(case, z3.BoolVal(truth)) for case, truth in chosen]
        simple = z3.simplify(z3.substitute(question, *replaced), som=not floats)
        if z3.is_false(simple):
            continue
        solver = z3.Solver() if floats else z3.SolverFor("QF_BV")
        solver.set("rlimit", _EFFORT_ON_FLOATS if floats else _EFFORT)
        solver.add(simple, *[case if truth else z3.Not(case) for case, truth in chosen])
        found = solver.check()
        if found == z3.sat:
            return SolverVerdict("refuted", _model(z3, solver.model(), stated, values))
        if found != z3.unsat:
            return OPEN
    return SolverVerdict("proved")


def _conditions(z3: Any, values: Sequence[Formula]) -> list[Formula]:  # noqa: ANN401 - the module
    """Return the different conditions of selections."""
    found: dict[int, Formula] = {}
    for value in values:
        if z3.is_app_of(value, z3.Z3_OP_ITE):
            condition = value.arg(0)
            found[condition.get_id()] = condition
    return list(found.values())


def _model(
    z3: Any,  # noqa: ANN401 - the module
    model: Formula,
    stated: Obligation,
    values: Sequence[Formula],
) -> tuple[int | float | bool, ...]:
    return tuple(
        number(z3, model.eval(value, model_completion=True), element.sort)
        for element, value in zip(stated.elements, values, strict=True)
        if element.op == "Variable"
    )


def number(z3: Any, value: Formula, sort: str) -> int | float | bool:  # noqa: ANN401 - the module
    """Return the number that a constant of z3 of element type `sort` stands for."""
    if z3.is_bool(value):
        return bool(z3.is_true(value))
    if not z3.is_fp(value):
        return int(value.as_signed_long() if DTYPES[sort].kind == "int" else value.as_long())
    if value.isNaN():
        return float("nan")
    sign = -1.0 if value.isNegative() else 1.0
    if value.isInf():
        return sign * float("inf")
    return sign * 0.0 if value.isZero() else float(z3.simplify(z3.fpToReal(value)).as_fraction())
