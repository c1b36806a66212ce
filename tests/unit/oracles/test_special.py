"""Results on special values: what the standards say is held against a compiler, and what they leave open is not."""

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from oracle_cases import FULL, OFF, full, node

from miscompile.core.case import Case, Port, Program
from miscompile.core.examination import examine
from miscompile.core.outcome import Crashed, Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.core.verdict import Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.oracles.conformance import check_oracle
from miscompile.oracles.kinds import OracleContext
from miscompile.oracles.readings import FREEDOMS, ReadableProgram, UnreadableError
from miscompile.oracles.special import KIND, Special
from miscompile.targets import known as known_module
from miscompile.targets.known import Known, Policy

NAN, INF = math.nan, math.inf


def special_case(nodes: Sequence[Node], *fed: Tensor, made: str = "float32", **constants: Tensor) -> Case:
    """A program of `nodes` on inputs x, z; its last result is the output."""
    inputs = [Port(name, value.dtype, value.shape) for name, value in zip("xz", fed, strict=False)]
    end = nodes[-1].outputs[0]
    graph = Graph(
        "g",
        tuple(ValueInfo(port.name, TensorType(port.dtype, port.shape)) for port in inputs),
        (ValueInfo(end, TensorType(made, None)),),
        tuple(nodes),
        constants,
    )
    ports = (Port(end, made, None),)
    return Case(Program("onnx", emit(Model(graph, {"": 18})), tuple(inputs), ports), (fed,), {"oracle": "special"})


def judged(case: Case, reference: Array | Tensor, faulty: Array | Tensor) -> Verdict:
    """Judge an optimised result by the unoptimised one."""
    both = [one if isinstance(one, Tensor) else tensor(np.asarray(one, np.float32)) for one in (reference, faulty)]
    runs = (Run(case, "toy", OFF), Run(case, "toy", FULL))
    return Special("toy").judge(runs, [Values(((one,),)) for one in both])


def floats(*numbers: float) -> Tensor:
    return full(np.array(numbers, np.float32))


def found(case: Case, reference: Sequence[float], faulty: Sequence[float]) -> str:
    """The class of the violation; empty when there is none."""
    verdict = judged(case, np.array(reference), np.array(faulty))
    return str(verdict.evidence.details["special"]) if isinstance(verdict, Violated) else ""


@pytest.fixture
def accepting_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the target's developers have accepted reports about inner results that leave their range."""
    policy = Policy("range", "accepted", "https://example.org/1", "said so")
    monkeypatch.setattr("miscompile.oracles.special.known", lambda name: Known((), (), (policy,)))


@pytest.mark.parametrize(
    ("nodes", "fed", "right", "wrong", "kind"),
    [
        ([node("Exp", "x", "a"), node("Log", "a", "y")], 89.0, INF, 89.0, "range"),
        ([node("Mul", "x x", "a"), node("Sqrt", "a", "y")], 1e30, INF, 1e30, "range"),
        ([node("Mul", "x x", "a"), node("Sqrt", "a", "y")], 1e-30, 0.0, 1e-30, "range"),
        ([node("Exp", "x", "a"), node("Div", "a a", "y")], 100.0, NAN, 1.0, "range"),
        ([node("Mul", "x x", "a"), node("Sqrt", "a", "y")], 1e18, 1e18, INF, "infinity"),
        ([node("Mul", "x x", "a"), node("Sqrt", "a", "y")], 1e-18, 1e-18, 0.0, "underflow"),
        ([node("Sub", "x x", "y")], INF, NAN, 0.0, "nan"),
        ([node("Neg", "x", "a"), node("Add", "a x", "y")], 0.0, 0.0, -0.0, "zero-sign"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("accepting_range")
def test_folds_that_forget_special_values_are_violations(
    nodes: list[Node], fed: float, right: float, wrong: float, kind: str
) -> None:
    case = special_case(nodes, floats(1.0, fed))

    base = as_written(case)[0]
    assert found(case, [base, right], [base, wrong]) == kind
    assert found(case, [base, right], [base, right]) == ""


def as_written(case: Case) -> Array:
    """The first output as onnx's reference implementation computes it."""
    from miscompile.graph.read import read

    names = [port.name for port in case.program.inputs]
    made = ReadableProgram(read(case.program.payload)).readings(dict(zip(names, case.feeds[0], strict=True)))
    return np.asarray(made["as written"][0])


@pytest.mark.parametrize(
    ("nodes", "fed", "right", "wrong"),
    [
        ([node("Max", "x z", "y")], (NAN, 1.0), NAN, 1.0),  # maximumNumber
        ([node("Max", "x z", "y")], (0.0, -0.0), 0.0, -0.0),  # either zero
        ([node("Relu", "x", "y")], (NAN,), NAN, 0.0),
        ([node("Mul", "x z", "y")], (1e-40, 1.0), 1e-40, 0.0),  # flushed
        ([node("Mul", "x z", "a"), node("Sub", "a x", "y")], (3e38, 2.0), INF, 3e38),  # one fused operation
        ([node("Exp", "x", "y")], (88.72284,), INF, 3.4e38),  # within the last places of the edge
        ([node("Sum", "x z x", "y")], (3e38, -3e38), INF, 3e38),  # another order
        ([node("Sum", "x z z", "y")], (-INF, 3e38), -INF, NAN),  # where the last two come first
        ([node("Cos", "x", "y")], (3.4e38,), 0.85, -0.5),  # another reduction of the argument
        ([node("Tanh", "x", "a"), node("Acosh", "a", "y")], (20.0,), 0.0, NAN),  # tanh may be just below one
        ([node("Sign", "x", "y")], (NAN,), NAN, 0.0),
        ([node("Ceil", "x", "a"), node("Ceil", "a", "y")], (-0.0,), -0.0, 0.0),  # the page says nothing of signs
        ([node("Reciprocal", "x", "a"), node("Reciprocal", "a", "y")], (3.4028232e38,), INF, 3.4028232e38),
    ],
)  # fmt: skip
def test_what_the_standards_leave_open_is_no_violation(
    nodes: list[Node], fed: tuple[float, ...], right: float, wrong: float
) -> None:
    case = special_case(nodes, *(floats(one) for one in fed))
    verdict = judged(case, np.array([right]), np.array([wrong]))
    assert isinstance(verdict, Holds), verdict


@pytest.mark.usefixtures("accepting_range")
def test_a_number_that_no_reading_has_is_a_violation_though_they_differ() -> None:
    nodes = [node("Neg", "x", "n"), node("Exp", "x", "a"), node("Exp", "n", "b"), node("Mul", "a b", "y")]
    case = special_case(nodes, floats(100.0))  # infinite, or NaN where subnormal numbers are zero
    assert found(case, [NAN], [1.0]) == "range"
    assert found(case, [NAN], [INF]) == ""
    chosen = special_case(
        [node("Max", "x z", "a"), node("Min", "x z", "b"), node("Sub", "a b", "y")], floats(NAN), floats(1.0)
    )
    assert found(chosen, [NAN], [0.0]) == ""


@pytest.mark.parametrize(
    ("nodes", "fed", "right", "wrong"),
    [
        ([node("Mul", "x z", "a"), node("Div", "a z", "y")], (3e38, 2.0), INF, 3e38),
        ([node("Mul", "x z", "a"), node("Mul", "a x", "y")], (3e38, 0.0), 0.0, 0.0),
        ([node("Reciprocal", "x", "a"), node("Mul", "a z", "y")], (1e-40, 0.0), NAN, 0.0),
        ([node("Exp", "x", "a"), node("Log", "a", "y")], (-200.0,), -INF, -200.0),
    ],
)
def test_without_a_policy_an_inner_result_may_have_a_wider_range(
    nodes: list[Node], fed: tuple[float, ...], right: float, wrong: float
) -> None:
    case = special_case(nodes, *(floats(one) for one in fed))
    assert found(case, [right], [wrong]) == ""


def test_an_inner_result_of_float64_may_have_a_wider_range() -> None:
    large, factor = (full([number], "float64") for number in (1e308, 16.0))
    case = special_case([node("Mul", "x z", "a"), node("Div", "a z", "y")], large, factor, made="float64")
    assert isinstance(judged(case, full([INF], "float64"), large), Holds)
    assert isinstance(judged(case, full([INF], "float64"), full([1e300], "float64")), Violated)


def test_payload_and_sign_of_nan_are_not_compared() -> None:
    words = np.array([0x7FC00000, 0xFFC00005], np.uint32).view(np.float32)
    case = special_case([node("Neg", "x", "y")], floats(NAN))
    assert judged(case, words[:1], words[1:]) == Holds()


def test_conversions_out_of_range_and_signed_overflow_are_open() -> None:
    case = special_case([node("Cast", "x", "y", to=6)], floats(NAN, 3e9, 2.5), made="int32")
    low, right = full([-(2**31), -(2**31), 2], "int32"), full([0, 2**31 - 1, 2], "int32")
    assert isinstance(judged(case, low, right), Holds)
    assert isinstance(judged(case, low, full([-(2**31), -(2**31), 3], "int32")), Violated)
    most = full([2**31 - 1], "int32")
    added = special_case([node("Add", "x x", "y")], most, made="int32")
    assert isinstance(judged(added, full([-2], "int32"), full([2**31 - 1], "int32")), Holds)


def test_sixteen_bits_may_be_kept_wide_between_operators() -> None:
    nodes = [node("Mul", "x x", "a"), node("Sqrt", "a", "y")]
    case = special_case(nodes, full([300.0], "float16"), made="float16")
    assert isinstance(judged(case, full([INF], "float16"), full([300.0], "float16")), Holds)


def test_a_violation_needs_the_unoptimised_build_on_its_side() -> None:
    case = special_case([node("Sub", "x x", "y")], floats(INF))
    assert isinstance(judged(case, np.array([0.0]), np.array([NAN])), Holds)
    assert isinstance(judged(case, np.array([0.0]), np.array([1.0])), Holds)


def test_programs_about_which_nothing_is_specified_are_inconclusive() -> None:
    case = special_case([node("Softmax", "x", "y")], floats(INF))
    assert isinstance(judged(case, np.array([NAN]), np.array([1.0])), Inconclusive)
    with pytest.raises(UnreadableError, match="Softmax"):
        as_written(case)


def test_every_reading_has_a_source() -> None:
    assert all(len(source) > 5 for source in FREEDOMS.values())


def test_a_death_on_special_values_is_a_death() -> None:
    case = special_case([node("Sub", "x x", "y")], floats(INF))
    runs = (Run(case, "toy", OFF), Run(case, "toy", FULL))
    verdict = Special("toy").judge(runs, [Values(((floats(NAN),),)), Crashed("run", 8)])
    assert isinstance(verdict, Violated)
    assert verdict.evidence.kind == "death"


@pytest.mark.parametrize(("status", "kind"), [("accepted", Violated), ("declined", Holds)])
def test_the_policy_of_the_target_decides(monkeypatch: pytest.MonkeyPatch, status: str, kind: type) -> None:
    policy = Policy("nan", status, "https://example.org/1", "said so")  # type: ignore[arg-type]
    monkeypatch.setattr("miscompile.oracles.special.known", lambda name: Known((), (), (policy,)))
    case = special_case([node("Sub", "x x", "y")], floats(INF))
    verdict = judged(case, np.array([NAN]), np.array([0.0]))
    assert isinstance(verdict, kind)
    if isinstance(verdict, Violated):
        assert verdict.evidence.details["policy"] == {"status": "accepted", "link": "https://example.org/1"}


def test_a_policy_may_be_about_some_operators() -> None:
    policy = Policy("nan", "declined", "https://example.org/1", "said so", frozenset({"Relu"}))
    known = Known((), (), (policy,))
    assert known.policy("nan", ["Relu", "Add"]) == policy
    assert known.policy("nan", ["Add"]) is None
    assert known.policy("zero-sign", ["Relu"]) is None
    with pytest.raises(ValueError, match="accepted or declined"):
        known_module._policy({"class": "nan", "status": "perhaps", "link": "", "note": ""})


class _Folding:
    """A runner of x - x: sound, or with the fold to zero in optimised builds."""

    def __init__(self, folds: bool) -> None:
        self.folds = folds

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        return [Values(tuple((self._one(feed[0], run.build),) for feed in run.case.feeds)) for run in runs]

    def _one(self, fed: Tensor, build: Build) -> Tensor:
        with np.errstate(all="ignore"):
            right = fed.array - fed.array
        return tensor(np.zeros_like(right) if self.folds and build.level == "full" else right)


def test_the_oracle_conforms() -> None:
    case = special_case([node("Sub", "x x", "y")], floats(INF, 1.0, NAN))
    check_oracle(KIND, _Folding(False), _Folding(True), [case], OracleContext(("toy",)))
    verdict = examine(case, Special("toy"), _Folding(True), random.Random(0)).verdict
    assert isinstance(verdict, Violated)
    assert (verdict.evidence.kind, verdict.evidence.rule) == ("special", "special")


def shared(case: Case, both: Sequence[float], other: Sequence[float]) -> str:
    """The class of what both builds of the toy do, if another implementation gives `other`; empty if it is right."""
    oracle, value = Special("toy", voters=("reference",)), Values(((floats(*both),),))
    runs = list(oracle.plan(case, random.Random(0)))
    verdict = oracle.judge(runs, [value, value])
    if isinstance(verdict, Needs):
        verdict = oracle.judge([*runs, *verdict.runs], [value, value, Values(((floats(*other),),))])
        assert isinstance(verdict, Violated | Holds)
    return str(verdict.evidence.details["special"]) if isinstance(verdict, Violated) else ""


def test_what_both_builds_do_wrong_needs_another_implementation() -> None:
    case = special_case([node("Exp", "x", "y")], floats(0.0, 100.0))
    assert shared(case, [1.0, 5.0], [1.0, INF]) == "infinity"
    assert shared(case, [1.0, 5.0], [1.0, 5.0]) == ""
    assert shared(case, [1.0, INF], [1.0, 5.0]) == "", "the builds are right, and nobody else is accused"


@pytest.mark.parametrize(
    ("both", "other", "kind"),
    [
        ([NAN, 2.0, 3.0], [NAN, NAN, 3.0], "nan"),
        ([NAN, 2.0, 3.0], [1.0, 2.0, 3.0], ""),
        ([NAN, NAN, 3.0], [1.0, 2.0, 3.0], ""),
        ([1.0, 2.0, NAN], [NAN, NAN, NAN], ""),
        ([1.0, 2.0, 3.0], [NAN, NAN, 3.0], ""),
    ],
)
def test_a_maximum_may_drop_every_nan_or_none(both: list[float], other: list[float], kind: str) -> None:
    last = other[-1]
    case = special_case([node("Max", "x z", "y")], floats(NAN, 2.0, last), floats(1.0, NAN, last))
    assert shared(case, both, other) == kind


def test_a_maximum_that_drops_some_nan_is_said_to_do_so() -> None:
    case = special_case([node("Max", "x z", "y")], floats(NAN, 2.0), floats(1.0, NAN))
    verdict = judged(case, np.array([NAN, NAN]), np.array([1.0, NAN]))
    assert isinstance(verdict, Violated)
    assert "drops some NaN and keeps others" in verdict.evidence.message
