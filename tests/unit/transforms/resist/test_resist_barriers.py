"""Every barrier, on every element type and rank that it takes, with the values that are hardest to keep."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from resist_models import agree, assert_twins_agree, made, special, twin

from miscompile.core.tensor import tensor
from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.graph.model import Model, TensorType
from miscompile.transforms.resist.strategies import MIN_OPSET, STRATEGIES
from miscompile.transforms.resist.transform import Resistant, sites

pytestmark = pytest.mark.compiler

SHAPES = ((), (1,), (8,), (2, 4), (2, 2, 2), (0, 3), (3, 0))
NUMBERS = special("int64", (2,))
EXACT = [name for name, strategy in STRATEGIES.items() if strategy.exact]


def chain(dtype: str, shape: tuple[int | str, ...], opset: int = 17) -> Model:
    """A value between two calls that change nothing; it is an output as well. Another input gives run-time values."""
    written = f"{dtype}[{','.join(map(str, shape))}]"
    return made(
        f"ir 8 opset {opset} graph g(%x: {written}, %n: int64[2]) -> (%a: {written}, %y: {written}) {{"
        " %a = Identity(%x) %b = Identity(%a) %y = Identity(%b) }"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_special_values_survive(name: str) -> None:
    strategy = STRATEGIES[name]
    held = 0
    for dtype in sorted(strategy.dtypes - strategy.rounding):
        for shape in SHAPES:
            model = chain(dtype, shape)
            form = Resistant(strategies=name)
            chosen = sites(model, form)
            assert bool(chosen) == strategy.fits(TensorType(dtype, shape), 17, "bits") or name == "tap"
            other = twin(model, form)
            if other is not None:
                held += len(chosen)
                check(other)
                assert_twins_agree(model, [other], (special(dtype, shape), NUMBERS))
    assert held >= 8 or name == "tap"


@pytest.mark.parametrize("name", [name for name in EXACT if name != "tap"])
def test_the_reference_agrees(name: str) -> None:
    """A second engine: in ONNX Runtime a barrier and the call beside it might be wrong alike."""
    strategy = STRATEGIES[name]
    for dtype in sorted((strategy.dtypes - strategy.rounding) & {"float32", "float64", "float16", "int64", "bool"}):
        for shape in ((2, 4), (8,), ()):
            model = chain(dtype, shape)
            other = twin(model, Resistant(strategies=name))
            if other is not None:
                feed = special(dtype, shape)
                found = ReferenceEvaluator(emit(other)).run(None, {"x": feed.array, "n": NUMBERS.array})
                assert all(agree(feed, tensor(np.asarray(value))) for value in found)


@pytest.mark.parametrize("dtype", sorted(STRATEGIES["where"].rounding & STRATEGIES["where"].dtypes))
def test_a_choice_between_floats_keeps_all_but_the_sign_of_zero(dtype: str) -> None:
    for shape in SHAPES:
        model = chain(dtype, shape)
        assert not sites(model, Resistant(strategies="where"))
        other = twin(model, Resistant(strategies="where", exactness="rounding"))
        assert other is not None
        assert_twins_agree(model, [other], (special(dtype, shape), NUMBERS), zeros=True)


@pytest.mark.parametrize("name", [name for name in EXACT if name not in ("tap", "split")])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_symbolic_sizes_stay_symbolic(name: str, dtype: str) -> None:
    model = chain(dtype, ("N", "M"))
    other = twin(model, Resistant(strategies=name))
    if other is None:
        assert (name, dtype) == ("where", "float32")
        return
    check(other)
    for shape in ((0, 3), (1, 1), (3, 0), (5, 2)):
        assert_twins_agree(model, [other], (special(dtype, shape), NUMBERS))


def test_a_split_needs_a_size_that_is_known() -> None:
    assert not sites(chain("float32", ("N", 1)), Resistant(strategies="split"))
    model = chain("float32", ("N", 4))
    other = twin(model, Resistant(strategies="split"))
    assert other is not None
    assert_twins_agree(model, [other], (special("float32", (3, 4)), NUMBERS))


@pytest.mark.parametrize("anchor", ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool", "uint64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,)])
def test_any_input_gives_run_time_values(anchor: str, shape: tuple[int, ...]) -> None:
    written = f"{anchor}[{','.join(map(str, shape))}]"
    model = made(
        f"ir 8 opset 17 graph g(%x: {written}) -> (%i: {written}, %y: int64[2], %z: float32[2]) {{"
        " init %c: int64[2] = [3, 4] init %d: float32[2] = [-0.0, 4.5]"
        " %i = Identity(%x) %y = Neg(%c) %z = Neg(%d) }"
    )
    for name in ("where", "gather", "if", "loop", "reshape", "slice", "expand"):
        other = twin(model, Resistant(classes="folding", strategies=name))
        assert other is not None
        check(other)
        assert_twins_agree(model, [other], (special(anchor, shape),))


def test_without_an_input_only_barriers_without_run_time_values_stand() -> None:
    model = made("ir 8 opset 17 graph g() -> (%y: float32[2,2]) {"
                 " init %c: float32[2,2] = [1.0, 2.0, 3.0, 4.0] %a = Neg(%c) %y = Exp(%a) }")  # fmt: skip
    chosen = {site.strategy for seed in range(20) for site in sites(model, Resistant(seed))}
    assert chosen
    assert not any(STRATEGIES[name].runtime for name in chosen)
    assert twin(model, Resistant(strategies="gather+if")) is None


def test_a_default_is_no_run_time_value() -> None:
    model = made("ir 8 opset 17 graph g(%x: float32[2]) -> (%y: float32[2]) {"
                 " init %x: float32[2] = [1.0, 2.0] %a = Neg(%x) %y = Exp(%a) }")  # fmt: skip
    assert twin(model, Resistant(strategies="gather")) is None


def test_old_opsets_are_left_alone() -> None:
    assert twin(chain("float32", (2,), MIN_OPSET - 1), Resistant()) is None
    assert twin(chain("float32", (2,), MIN_OPSET), Resistant()) is not None


def test_outputs_of_inputs_stay() -> None:
    model = made("ir 8 opset 17 graph g(%x: float32[2]) -> (%x: float32[2], %y: float32[2]) { %y = Neg(%x) }")
    other = twin(model, Resistant())
    assert other is not None
    assert [info.name for info in other.graph.outputs] == ["x", "y"]
    assert_twins_agree(model, [other], (special("float32", (2,)),))
