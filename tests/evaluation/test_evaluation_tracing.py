"""Tracing: whether a pattern is inside its seed is read off the program, not off what synthesis says of itself."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from evaluation.oatest.tracing import Joined, Trace, Traced, joined
from miscompile.base.rng import stream
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.patterns.pattern import Pattern
from miscompile.patterns.shipped import fusion_motifs
from miscompile.producers.synthesis.options import OatestOptions
from miscompile.targets.registry import parse_target

OPEN = Support(open=True)
PATTERNS = [Pattern(motif.name, None, motif, "block") for motif in fusion_motifs()[:80]]
FLOATS = TensorType("float32", (2, 3))
TRACE = Trace(frozenset({"before"}), frozenset({"own"}), frozenset({"end"}))


def model(*nodes: tuple[str, str, str]) -> Model:
    """Return a model of operators, each given as operator, operands and result."""
    made = [Node(op, tuple(read.split()), (result,)) for op, read, result in nodes]
    outputs = tuple(ValueInfo(node.outputs[0], FLOATS) for node in made)
    return Model(Graph("g", (ValueInfo("x", FLOATS),), outputs, tuple(made)), {"": 17})


SEED = ("Relu", "x", "before"), ("Neg", "before", "end")


def test_a_pattern_beside_its_seed_is_not_inside() -> None:
    beside = model(SEED[0], ("Abs", "x", "own"), SEED[1])
    assert joined(beside, TRACE) == Joined(into=False, out=False)


def test_each_side_counts_for_itself_and_only_both_are_inside() -> None:
    into = joined(model(SEED[0], ("Abs", "before", "own"), SEED[1]), TRACE)
    out = joined(model(SEED[0], ("Abs", "x", "own"), ("Add", "before own", "end")), TRACE)
    both = joined(model(SEED[0], ("Abs", "before", "own"), ("Add", "before own", "end")), TRACE)
    assert (into, out, both) == (Joined(True, False), Joined(False, True), Joined(True, True))
    assert [one.inside for one in (into, out, both)] == [False, False, True]


def test_bridges_may_stand_between() -> None:
    bridged = model(SEED[0], ("Abs", "before", "own"), ("Cast", "own", "bridge"), ("Add", "before bridge", "end"))
    assert joined(bridged, TRACE).inside


def test_a_result_that_depends_on_no_input_is_no_inner_tensor() -> None:
    constant = model(("ConstantOfShape", "", "before"), ("Abs", "before", "own"), ("Neg", "own", "end"))
    assert joined(constant, TRACE) == Joined(into=False, out=True, fixed=True)


@settings(max_examples=25)
@example(355, 1.0)  # a function that holds a bridge which its pattern does not take
@given(st.integers(0, 10_000), st.sampled_from([0.0, 1.0]))
def test_what_synthesis_says_of_itself_is_so(seed: int, calls: float) -> None:
    """Neither counts a seed's operator that works on constants alone."""
    options = OatestOptions(opsets=(17, 21), variants=1, calls=calls, control=0.0)
    producer = Traced(options, OPEN, PATTERNS, parse_target("onnxruntime").about)
    for number in range(4):
        case = producer.propose(stream(seed, number))
        trace = producer.trace(case)
        found = joined(read(case.program.payload), trace)
        assert found.out == case.recipe["inner out"]
        assert found.into == case.recipe["inner in"]
        assert not (found.into and found.fixed)
        assert not trace.before & trace.own
        assert not trace.behind & trace.own
    assert producer.cpu_seconds > 0
