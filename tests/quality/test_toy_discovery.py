"""Every planted bug that the generator can reach is found within a stated number of tests, and reduced to its core.

The numbers are about six times the mean of what was measured with five to eight seeds (at least 300), so that another
seed misses a bug once in 400 times. A test that fails prints its seed, so that `hunt` can be run again.
"""

from itertools import islice

import numpy as np
import pytest
from toy_hunt import OFF, InProcessRunner, blame, hunt, judged, operators, pair_on, reduced, trail

from miscompile.core.outcome import Values
from miscompile.core.ports import Runner
from miscompile.core.run import Run
from miscompile.core.verdict import Inconclusive, Violated
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.targets.toy.bugs import BUGS, FATAL

pytestmark = pytest.mark.quality

SEED = 1

WITHIN = {
    "arg_min_of_neg_overflow": 7500,
    "batch_norm_epsilon": 2100,
    "bias_inside_activation": 4200,
    "bool_or_as_add": 1000,
    "cast_chain_bool": 2800,
    "cast_chain_narrowing": 2000,
    "checked_gather": 300,
    "concat_split_order": 2600,
    "conv_add_last_axis": 3500,
    "cse_ignores_attributes": 1300,
    "folding_in_float32": 300,
    "fusion_drops_inner_output": 2000,
    "inlined_in_wider_type": 2000,
    "matmul_bias_rank": 1300,
    "mod_as_bit_mask": 3100,
    "mul_zero_drops_broadcast": 2200,
    "pad_conv_mode": 1500,
    "rank0_key_error": 300,
    "reduce_fusion_keepdims": 3600,
    "relu_clip_missing_min": 1400,
    "reshape_merge_zero": 2000,
    "scale_hoisting_vector": 5700,
    "signed_div_as_shift": 1600,
    "slice_merge_negative_step": 3000,
    "softmax_axis": 1400,
    "sub_commutes": 300,
    "sub_self_dtype": 300,
    "transpose_pair_not_inverse": 1400,
    "unsigned_sub_clamped": 300,
    "where_constant_no_expand": 600,
}
"""Tests within which a campaign meets each bug."""

DEAR = {
    "abort_reflect_pad",
    "arg_min_of_neg_overflow",
    "batch_norm_epsilon",
    "bias_inside_activation",
    "concat_split_order",
    "conv_add_last_axis",
    "cse_ignores_attributes",
    "fusion_drops_inner_output",
    "hang_concat_same",
    "memory_expand",
    "mod_as_bit_mask",
    "pad_conv_mode",
    "reduce_fusion_keepdims",
    "scale_hoisting_vector",
    "segfault_tile",
    "signed_div_as_shift",
    "slice_merge_negative_step",
    "softmax_axis",
}
"""Those of them that take longest to find and reduce."""

FATAL_WITHIN = 400
"""The same for each of the bugs that cost a worker its life."""

OUT_OF_REACH = {
    "mean_by_reciprocal": "ONNX does not say how a mean of integers is rounded, so the generator makes none",
    "cubic_cse": "only the check of cost looks at time (tests/process/test_cost_campaign.py)",
    "garbage_arg_max": "printing megabytes is no violation; the campaign has to stand it (tests/process)",
}
"""Bugs that no campaign of this generator and these oracles can report, with the reason."""


def test_every_bug_is_in_one_of_the_lists() -> None:
    assert sorted([*WITHIN, *FATAL, *OUT_OF_REACH]) == sorted(BUGS)


LOOKS = 3
"""Finds of one bug of which one must shrink to the core: others may need more operators, such as one that is folded."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in DEAR else name for name in sorted(WITHIN)]
)
def test_a_bug_is_found_attributed_and_reduced(name: str) -> None:
    runner = InProcessRunner(f"toy{{bugs={name}}}")
    look(name, runner, WITHIN[name])


@pytest.mark.process
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in DEAR else name for name in sorted(FATAL)]
)
def test_a_fatal_bug_is_found_and_reduced(name: str) -> None:
    with LocalPool(f"toy{{bugs={name}}}", 1, Limits(seconds=0.5, memory=256 << 20)) as runner:
        look(name, runner, FATAL_WITHIN, tries=300)


def look(name: str, runner: Runner, limit: int, tries: int = 2000) -> None:
    """Find the bug within `limit` tests, and its core and culprits in one of the first finds."""
    bug, target = BUGS[name], f"toy{{bugs={name}}}"
    assert bug.kind != "garbage"
    guilty = tuple(sorted(group.split("|")[0] for group in bug.passes))
    finds = hunt(target, bug.kind, runner, SEED, limit)
    seen = []
    for index, case in islice(finds, LOOKS):
        small = reduced(target, case, runner, tries)
        assert small is not None, f"test {index} of seed {SEED} does not repeat"
        assert small.evidence.kind == bug.kind
        found = blame(target, small.case, runner)
        if len(operators(small.case)) <= bug.nodes and found == guilty:
            return
        seen.append(f"test {index} of seed {SEED}: {operators(small.case)}, {found}")
    assert seen, f"{name} was not found in {limit} tests with seed {SEED}"
    raise AssertionError("no find shrinks to the core:\n" + "\n".join(seen))


@pytest.mark.slow  # thousands of tests; the toy's own tests hold its two builds against each other on fewer
def test_an_honest_compiler_is_not_accused() -> None:
    runner, pair = InProcessRunner("toy"), pair_on("toy")
    accused, undecided = [], 0
    for index, (case, reference) in enumerate(trail(SEED).cases(3000)):
        verdict = judged(case, reference, pair, runner)
        if isinstance(verdict, Violated):
            accused.append(f"test {index} of seed {SEED}: {verdict.evidence.message}")
        undecided += isinstance(verdict, Inconclusive)
    assert not accused, "\n".join(accused)
    assert undecided < 60, "too many tests say nothing"


def test_the_toy_takes_what_is_generated_for_it_and_the_numbers_are_finite() -> None:
    outcomes = [outcome for _, outcome in trail(SEED).cases(600)]
    taken = [outcome for outcome in outcomes if isinstance(outcome, Values)]
    assert len(taken) > 0.97 * len(outcomes)
    wild = 0
    for outcome in taken:
        results = [result.numbers() for row in outcome.results for result in row if result is not None]
        wild += any(array.dtype.kind == "f" and not np.isfinite(array).all() for array in results)
    assert wild == 0


def test_the_trail_can_be_walked_again() -> None:
    case, reference = next(trail(SEED).cases(1))
    again = InProcessRunner("toy").run([Run(case, "toy", OFF)])[0]
    assert isinstance(reference, Values)
    assert isinstance(again, Values)
    assert all(one.same(two) for one, two in zip(reference.results[0], again.results[0], strict=True) if one and two)
