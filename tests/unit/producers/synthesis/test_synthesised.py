"""The producer: the same from the same stream, high orders, functions, and what it learns."""

import random
from collections.abc import Sequence

import onnx
import onnx.inliner
import pytest
from onnx.reference import ReferenceEvaluator

from miscompile.base.errors import UsageError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.outcome import Crashed, Observations, Outcome, Values
from miscompile.core.verdict import Holds, Inconclusive
from miscompile.ops.support import Support
from miscompile.patterns.pattern import Pattern
from miscompile.patterns.shipped import fusion_motifs, shipped_patterns
from miscompile.producers.synthesis.host import takes
from miscompile.producers.synthesis.options import Contexts, OatestOptions
from miscompile.producers.synthesis.producer import Synthesised

OPEN = Support(open=True)
PATTERNS = [Pattern(motif.name, None, motif, "block") for motif in fusion_motifs()[:60]]
OPTIONS = OatestOptions(opsets=(17, 21), variants=1, calls=0.0)


def producer(options: OatestOptions = OPTIONS) -> Synthesised:
    return Synthesised(options, OPEN, PATTERNS, ["toy"])


def cases(made: Synthesised, count: int) -> list[Case]:
    return [made.propose(stream(7, "case", number)) for number in range(count)]


def seen(*passes: str) -> Sequence[Outcome]:
    return [Values((), Observations(passes=passes))]


def test_the_same_streams_give_the_same_bytes() -> None:
    first, second = cases(producer(), 12), cases(producer(), 12)
    assert [case.program.payload for case in first] == [case.program.payload for case in second]
    assert [case.recipe for case in first] == [case.recipe for case in second]


def test_clean_results_with_new_sets_of_passes_become_seeds_and_patterns_meet() -> None:
    made = producer()
    orders = []
    for number in range(80):
        case = made.propose(stream(9, number))
        orders.append(len(case.recipe["motifs"]))
        made.learn(case, seen(f"pass {number}"), Holds())
    assert max(orders) >= 3
    assert any(entry.passes for entry in made.pool.entries)


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([Crashed("run", 11)], Holds()),
        (seen("A"), Inconclusive("unsupported")),
        ([Values(())], Holds()),
    ],
)
def test_what_is_not_clean_or_not_new_is_no_seed(outcomes: Sequence[Outcome], verdict: Holds | Inconclusive) -> None:
    made = producer()
    for number in range(20):
        case = made.propose(stream(11, number))
        made.learn(case, outcomes, verdict)
    assert sum(len(entry.host.patterns) > 0 for entry in made.pool.entries) <= 2


def test_without_high_order_nothing_comes_back() -> None:
    made = producer(OatestOptions(opsets=(17,), variants=1, high_order=False))
    for number in range(20):
        made.learn(made.propose(stream(11, number)), seen(str(number)), Holds())
    assert not any(entry.host.patterns for entry in made.pool.entries)


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value", "ignore:overflow")
def test_a_called_pattern_computes_what_the_inlined_one_does() -> None:
    """numpy, which the evaluator works with, warns of what ONNX defines."""
    made = producer(OatestOptions(opsets=(17,), variants=1, calls=1.0, control=0.0))
    called = [case for case in cases(made, 30) if case.recipe.get("called")]
    assert len(called) >= 10
    agreed = 0
    for case in called:
        model = onnx.load_from_string(case.program.payload)
        assert model.functions
        onnx.checker.check_model(model, full_check=True)
        inlined = onnx.inliner.inline_local_functions(model)
        feed = {port.name: one.array for port, one in zip(case.program.inputs, case.feeds[0], strict=True)}
        try:
            wanted = ReferenceEvaluator(inlined).run(None, feed)
        except Exception:  # noqa: BLE001, S112 - the evaluator lacks operators; enough others are compared
            continue
        found = ReferenceEvaluator(model).run(None, feed)
        assert all((left == right).all() or (left != left).any() for left, right in zip(wanted, found, strict=True))
        agreed += 1
    assert agreed >= 5


def test_contexts_can_be_left_out_or_be_the_patterns_themselves() -> None:
    for case in cases(producer(OatestOptions(opsets=(17,), variants=1, seeds="none")), 5):
        assert len(case.recipe["motifs"]) == 1
    alone = Synthesised(OatestOptions(opsets=(17,), variants=2, seeds="patterns"), OPEN, PATTERNS, ["toy"])
    assert alone.propose(random.Random(1)).recipe["variant"] == 0


def of_few_opsets() -> Pattern:
    """A pattern with a body, which means in opsets 16 to 18 what it does where it was found."""
    return next(one for one in shipped_patterns() if one.name == "openvino_EliminateDuplicateTIInputs_1")


@pytest.mark.parametrize("seeds", ["generated", "none"])
def test_a_pattern_comes_into_seeds_of_an_opset_that_it_takes(seeds: Contexts) -> None:
    pattern, options = of_few_opsets(), OatestOptions(variants=1, seeds=seeds, mutations=0.0)
    made = Synthesised(options, OPEN, [PATTERNS[0], pattern], ["nothing"])
    drawn = [case.recipe for case in cases(made, 40)]
    own = [recipe["opset"] for recipe in drawn if recipe["motifs"][-1] == pattern.name]
    assert len(own) > 10
    assert set(own) <= {opset for opset in range(13, 29) if takes(pattern, opset)} == {16, 17, 18}
    assert len({recipe["opset"] for recipe in drawn}) > 3
    assert made.chooser.failures[pattern.name] < 0


def test_a_pattern_that_no_opset_takes_is_none() -> None:
    with pytest.raises(UsageError, match="no pattern"):
        Synthesised(OatestOptions(opsets=(13, 21)), OPEN, [of_few_opsets()], ["openvino"])


def test_there_must_be_patterns() -> None:
    with pytest.raises(UsageError, match="no pattern"):
        Synthesised(OPTIONS, OPEN, [], ["toy"])
