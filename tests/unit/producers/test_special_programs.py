"""Programs on special values have them in feeds and constants, and operators about which something is specified."""

import random

import numpy as np
import pytest

from miscompile.base.dtypes import is_float
from miscompile.base.errors import RejectedDraft, SpecError, UsageError
from miscompile.core.tensor import Array
from miscompile.graph.check import check
from miscompile.graph.read import read
from miscompile.ops.registry import specs
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.special import EXPONENTIAL, SQUARES, least, least_normal, special_elements
from miscompile.ops.support import Support
from miscompile.ops.values import Range
from miscompile.producers.special import OpenScope, OpenSite, SpecialOptions, SpecialProducer

PRODUCER = SpecialProducer(SpecialOptions(), Support(open=True))


def test_programs_are_valid_and_name_their_oracle() -> None:
    kinds, guards = set(), {"Clip", "Constant"}
    for seed in range(150):
        case = PRODUCER.propose(random.Random(seed))
        model = read(case.program.payload)
        check(model)
        assert case.recipe["oracle"] == "special"
        assert len(case.feeds) == 2
        kinds |= {node.op for node in model.graph.nodes}
    known = specs()
    assert all(op in guards or known[op].special is not None for op in kinds)
    assert len(kinds) > 40


@pytest.mark.parametrize("op", sorted(op for op, spec in specs().items() if spec.special is not None))
def test_every_operator_that_states_something_meets_special_values(op: str) -> None:
    producer = SpecialProducer(SpecialOptions(ops=(op,), motifs=0.0), Support(open=True))
    for seed in range(200):
        case = producer.propose(random.Random(seed))
        types = [value.dtype for value in (*case.feeds[0], *read(case.program.payload).graph.initializers.values())]
        if any(map(is_float, types)) or not any(map(is_float, specs()[op].dtypes)):
            return
    raise AssertionError(f"{op} never has an operand of floats")


def test_motifs_are_planted_on_special_values() -> None:
    """Motifs have operators that the producer hardly draws side by side, as in the chain of a normalisation."""
    motifs = SpecialProducer(SpecialOptions(motifs=1.0, nodes=1), Support(open=True))
    sizes, odd = [], 0
    for seed in range(60):
        case = motifs.propose(random.Random(seed))
        model = read(case.program.payload)
        check(model)
        sizes.append(len(model.graph.nodes))
        odd += any(is_float(value.dtype) and not np.isfinite(value.array).all() for value in case.feeds[0])
    assert max(sizes) >= 4
    assert odd > 15


def test_a_motif_that_wants_a_value_of_a_negative_size_is_given_up() -> None:
    scope = OpenScope(random.Random(1), 21, SpecialOptions(), OperatorLimits(), Support(open=True))
    with pytest.raises(RejectedDraft, match="cannot have the shape"):
        scope.drawn_constant("float32", (2, -1), Range(-1, 1, False))


def test_a_second_operand_may_be_one_number_in_a_larger_tensor() -> None:
    scope = OpenScope(random.Random(1), 21, SpecialOptions(), OperatorLimits(), Support(open=True))
    drawn = [OpenSite(scope, "float32").partner((3,)).value for _ in range(200)]
    tensors = [value for value in drawn if value is not None and value.size > 1]
    repeated = [value for value in tensors if len(set(value.view(np.uint32).ravel().tolist())) == 1]
    assert {value.shape == (3,) for value in repeated} == {True, False}


def test_the_same_stream_gives_the_same_program() -> None:
    one, other = (PRODUCER.propose(random.Random(5)) for _ in range(2))
    assert one.program == other.program
    assert all(a.same(b) for a, b in zip(one.feeds[0], other.feeds[0], strict=True))


def test_feeds_hold_special_values_of_all_sorts() -> None:
    seen = set()
    for seed in range(80):
        for feed in PRODUCER.propose(random.Random(seed)).feeds:
            for value in feed:
                if value.dtype == "float32":
                    seen |= {name for name, there in _sorts(value.array).items() if there.any()}
    assert seen == {"nan", "infinity", "minus zero", "subnormal", "largest", "usual"}


def _sorts(numbers: Array) -> dict[str, Array]:
    size = np.abs(numbers)
    return {
        "nan": np.isnan(numbers),
        "infinity": np.isinf(numbers),
        "minus zero": (numbers == 0) & np.signbit(numbers),
        "subnormal": (size > 0) & (size < np.finfo(np.float32).tiny),
        "largest": size == np.finfo(np.float32).max,
        "usual": (size >= 0.1) & (size <= 3),
    }


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_edges_come_with_their_neighbours(dtype: str) -> None:
    edge = EXPONENTIAL(dtype)[0]
    pool = special_elements(dtype, (EXPONENTIAL, SQUARES))
    numbers = (pool.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else pool
    near = np.unique(np.asarray(numbers, np.float64))
    assert ((near > 0.98 * edge) & (near < 1.02 * edge)).sum() >= 3
    assert least(dtype) in near
    assert least_normal(dtype) in near


def test_integers_come_from_the_ends_of_their_type() -> None:
    assert {int(one) for one in special_elements("int64", ())} >= {-(2**63), 2**63 - 1, 0}
    assert {int(one) for one in special_elements("uint8", ())} >= {0, 255}
    assert not is_float("int64")


def test_options_that_leave_nothing_are_refused() -> None:
    with pytest.raises(SpecError, match="special"):
        SpecialOptions(special=2.0)
    with pytest.raises(UsageError, match="no operator"):
        SpecialProducer(SpecialOptions(ops=("Softmax",)), Support(open=True))
