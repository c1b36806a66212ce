"""The oracle of symbolic sizes, and what symbols mean to the judgement of values, types and noise."""

import numpy as np
import pytest
from oracle_cases import full

from miscompile.base.rng import stream
from miscompile.base.specs import parse_spec
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Crashed, Outcome, Raised, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Holds, Inconclusive, Needs, Violated
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.oracles.compare import contradiction, symbols_of
from miscompile.oracles.dynamic import Dynamic
from miscompile.oracles.montecarlo import ROUNDS, joined, noise_twins
from miscompile.oracles.narrow import fit_of

ORACLE = Dynamic("toy", lesser_chance=0.0)
SIZES = (3, 0, 5)


def symbolic(*, exact: bool = True) -> Case:
    """Return a flattened product: Reshape(x * x, [N * 2]), whose target is computed from the shape of x."""
    graph = Graph(
        "g",
        (ValueInfo("x", TensorType("float32", ("N", 2))),),
        (ValueInfo("y", TensorType("float32", (None,))), ValueInfo("z", TensorType("float32", ("N", 2)))),
        (
            Node("Mul", ("x", "x"), ("z",)),
            Node("Shape", ("x",), ("s",)),
            Node("ReduceProd", ("s",), ("n",)),
            Node("Reshape", ("z", "n"), ("y",)),
        ),
    )
    program = Program(
        "onnx",
        emit(Model(graph, {"": 18})),
        (Port("x", "float32", ("N", 2)),),
        (Port("y", "float32", (None,), exact), Port("z", "float32", ("N", 2), exact)),
    )
    return Case(program, tuple((tensor(np.full((size, 2), 1.5), "float32"),) for size in SIZES), {"oracle": "dynamic"})


def results(factor: float = 1.0, sizes: tuple[int, ...] = SIZES) -> Values:
    return Values(
        tuple((full(np.full(2 * size, 2.25 * factor)), full(np.full((size, 2), 2.25 * factor))) for size in sizes)
    )


def runs(item: Case) -> tuple[Run, ...]:
    return ORACLE.plan(item, stream(0, "plan"))


def judge(item: Case, *outcomes: Outcome) -> object:
    return ORACLE.judge(runs(item), outcomes)


def test_the_symbolic_build_is_held_against_static_ones() -> None:
    planned = Dynamic("toy", lesser_chance=1.0, disabled=frozenset({"p"})).plan(symbolic(), stream(0, "plan"))
    assert [run.build for run in planned[:2]] == [
        Build("off", transform=parse_spec("static")),
        Build("full", frozenset({"p"})),
    ]
    assert planned[2].build in (Build("off"), Build("full", frozenset({"p"}), transform=parse_spec("static")))


def test_equal_values_hold() -> None:
    assert judge(symbolic(), results(), results()) == Holds()


def test_a_difference_at_one_size_is_a_violation() -> None:
    rows = list(results().results)
    rows[2] = (rows[2][0], full(np.full((5, 2), 7.0)))
    verdict = judge(symbolic(), results(), Values(tuple(rows)))
    assert isinstance(verdict, Violated)
    assert (verdict.evidence.kind, verdict.evidence.details["feed"]) == ("wrong", 2)


def test_a_wrong_size_is_a_violation() -> None:
    verdict = judge(symbolic(), results(), results(sizes=(3, 1, 5)))
    assert isinstance(verdict, Violated)
    assert (verdict.evidence.kind, verdict.evidence.faulty.build) == ("shape", Build("full"))


def test_symbols_may_be_refused_but_nothing_may_die_of_them() -> None:
    item = symbolic()
    assert isinstance(judge(item, results(), Unsupported("compile", "no symbols")), Inconclusive)
    assert isinstance(judge(item, results(), Crashed("compile", 11)), Violated)
    assert isinstance(judge(item, results(), Raised("run", "Error", "wrong size")), Violated)


def test_a_refusal_of_fixed_sizes_alone_is_no_matter_of_symbols() -> None:
    item = symbolic()
    planned = runs(item)
    static = (planned[0], Run(item, "toy", Build("full", transform=parse_spec("static"))))
    assert isinstance(ORACLE.judge(static, (results(), Unsupported("compile", "no"))), Violated)


def test_what_the_static_build_does_wrong_is_left_to_others() -> None:
    error = Raised("run", "Error", "empty")
    assert isinstance(judge(symbolic(), error, error), Inconclusive)
    assert isinstance(judge(symbolic(), results(sizes=(3, 1, 5)), results()), Inconclusive)
    assert isinstance(judge(symbolic(), Crashed("run", 6), error), Violated)


def test_an_inexact_difference_asks_for_noise_at_every_size() -> None:
    item = symbolic(exact=False)
    other = results(1.001)
    needs = judge(item, results(), other)
    assert isinstance(needs, Needs)
    assert [run.case.program.inputs[0].shape for run in needs.runs] == [(size, 2) for size in SIZES]
    assert all(run.build == Build("off", transform=parse_spec("static")) for run in needs.runs)
    noise = [_noise(size, 1.0001) for size in SIZES]
    verdict = ORACLE.judge((*runs(item), *needs.runs), (results(), other, *noise))
    assert isinstance(verdict, Violated)
    loose = [_noise(size, 1.1) for size in SIZES]
    assert ORACLE.judge((*runs(item), *needs.runs), (results(), other, *loose)) == Holds("within rounding")


def _noise(size: int, factor: float) -> Values:
    silent, moved = results(sizes=(size,)).results, results(factor, (size,)).results
    return Values(silent + moved * ROUNDS)


def test_noise_twins_have_noise_for_every_element() -> None:
    twins = noise_twins(symbolic(), 1)
    assert len(twins) == len(SIZES)
    for size, twin in zip(SIZES, twins, strict=True):
        assert len(twin.feeds) == 1 + ROUNDS
        shapes = {value.shape for value in twin.feeds[0]}
        assert shapes == {(size, 2), (2 * size,)}


def test_twins_that_fail_stand_for_all() -> None:
    failed = Raised("run", "Error", "no")
    assert joined([_noise(1, 1.0), failed]) is failed
    whole = joined([_noise(1, 1.0), _noise(2, 1.0)])
    assert isinstance(whole, Values)
    assert len(whole.results) == 2 * (1 + ROUNDS)
    assert [row[1].shape for row in whole.results[:3] if row[1]] == [(1, 2), (2, 2), (1, 2)]


def test_a_symbol_means_one_size() -> None:
    item = symbolic()
    ports = item.program.outputs
    assert symbols_of(item) == [{"N": size} for size in SIZES]
    assert contradiction(ports, results(), symbols_of(item)) is None
    breach = contradiction(ports, results(sizes=(3, 0, 4)), symbols_of(item))
    assert breach is not None
    assert (breach.kind, breach.feed, breach.output) == ("shape", 2, 1)
    twice = (Port("a", "float32", ("K",)), Port("b", "float32", ("K",)))
    assert contradiction(twice, Values(((full([1, 2]), full([3, 4])),))) is None
    assert contradiction(twice, Values(((full([1, 2]), full([3])),))) is not None


@pytest.mark.parametrize(("narrowed", "fit"), [({}, "fits"), ({"float32": "float16"}, "rounds")])
def test_narrow_types_are_looked_at_at_each_size(narrowed: dict[str, str], fit: str) -> None:
    assert fit_of(symbolic(), narrowed) == fit
