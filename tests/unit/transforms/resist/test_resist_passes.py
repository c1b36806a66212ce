"""Barriers do their work on a real compiler: what ONNX Runtime fuses, folds or removes, it leaves in the twin."""

from collections import Counter
from pathlib import Path

import pytest
from resist_models import made, operators, optimised

from miscompile.transforms.resist.transform import Resistant

pytestmark = pytest.mark.compiler

_WEIGHTS = "init %w: float32[2,1,2,2] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]"
_EIGHT = "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]"

PATTERNS = {
    "MatMul and Add": (
        "fusion",
        """(%x: float32[2,2]) -> (%y: float32[2,2]) { init %w: float32[2,2] = [1.0, 2.0, 3.0, 4.0]
        init %b: float32[2] = [1.0, 2.0] %m = MatMul(%x, %w) %y = Add(%m, %b) }""",
    ),
    "Conv and BatchNormalization": (
        "fusion",
        f"""(%x: float32[1,1,4,4]) -> (%y: float32[1,2,3,3]) {{ {_WEIGHTS} init %s: float32[2] = [1.0, 2.0]
        init %v: float32[2] = [1.5, 2.5] %c = Conv(%x, %w) %y = BatchNormalization(%c, %s, %s, %s, %v) }}""",
    ),
    "Conv and Add": (
        "fusion",
        f"""(%x: float32[1,1,4,4]) -> (%y: float32[1,2,3,3]) {{ {_WEIGHTS} init %s: float32[1,2,1,1] = [1.0, 2.0]
        %c = Conv(%x, %w) %y = Add(%c, %s) }}""",
    ),
    "Conv and Relu": (
        "fusion",
        f"(%x: float32[1,1,4,4]) -> (%y: float32[1,2,3,3]) {{ {_WEIGHTS} %c = Conv(%x, %w) %y = Relu(%c) }}",
    ),
    "Pad and Conv": (
        "fusion",
        f"""(%x: float32[1,1,4,4]) -> (%y: float32[1,2,5,5]) {{ init %p: int64[8] = [0, 0, 1, 1, 0, 0, 1, 1]
        {_WEIGHTS} %a = Pad(%x, %p) %y = Conv(%a, %w) }}""",
    ),
    "Gelu": (
        "fusion",
        """(%x: float32[2,8]) -> (%y: float32[2,8]) { init %r: float32[] = [1.4142135] init %one: float32[] = [1.0]
        init %h: float32[] = [0.5] %d = Div(%x, %r) %e = Erf(%d) %a = Add(%e, %one) %m = Mul(%x, %a)
        %y = Mul(%m, %h) }""",
    ),
    "LayerNormalization": (
        "fusion",
        f"""(%x: float32[2,8]) -> (%y: float32[2,8]) {{ init %ax: int64[1] = [-1] init %two: float32[] = [2.0]
        init %eps: float32[] = [0.00001] init %g: float32[8] = {_EIGHT} init %b: float32[8] = {_EIGHT}
        %mu = ReduceMean(%x, %ax) {{keepdims=1}} %d = Sub(%x, %mu) %p = Pow(%d, %two)
        %v = ReduceMean(%p, %ax) {{keepdims=1}} %ve = Add(%v, %eps) %s = Sqrt(%ve) %q = Div(%d, %s)
        %sc = Mul(%q, %g) %y = Add(%sc, %b) }}""",
    ),
    "Transposes that cancel": (
        "layout",
        """(%x: float32[2,3]) -> (%y: float32[2,3]) { %a = Abs(%x) %t = Transpose(%a) {perm=[1,0]}
        %u = Transpose(%t) {perm=[1,0]} %y = Exp(%u) }""",
    ),
    "constants that fold": (
        "folding",
        """(%x: float32[3]) -> (%y: float32[3]) { init %c: float32[3] = [1.0, 2.0, 3.0] %n = Exp(%c)
        %y = Add(%x, %n) }""",
    ),
    "common subexpressions": (
        "cse",
        """(%x: float32[3]) -> (%y: float32[3], %z: float32[3]) { %a = Exp(%x) %b = Exp(%x) %y = Neg(%a)
        %z = Abs(%b) }""",
    ),
    "a neutral factor": (
        "identity",
        """(%x: float32[3]) -> (%y: float32[3]) { init %c: float32[] = [1.0] %a = Exp(%x) %b = Mul(%a, %c)
        %y = Neg(%b) }""",
    ),
    "a chain of casts": (
        "casts",
        """(%x: int8[3]) -> (%y: int8[3]) { %a = Abs(%x) %b = Cast(%a) {to=6} %c = Cast(%b) {to=7}
        %d = Cast(%c) {to=6} %e = Cast(%d) {to=3} %y = Abs(%e) }""",
    ),
    "a chain of reshapes": (
        "reshape",
        """(%x: float32[2,3]) -> (%y: float32[6]) { init %s: int64[2] = [3, 2] init %t: int64[1] = [6] %a = Abs(%x)
        %b = Reshape(%a, %s) %c = Reshape(%b, %t) %y = Exp(%c) }""",
    ),
    "a scaled product": (
        "algebraic",
        """(%x: float32[2,3], %w: float32[3,2]) -> (%y: float32[2,2]) { init %c: float32[] = [2.0] %a = Mul(%x, %c)
        %y = MatMul(%a, %w) }""",
    ),
    "Relu and Clip": (
        "algebraic",
        """(%x: float32[3]) -> (%y: float32[3]) { init %l: float32[] = [0.0] init %h: float32[] = [6.0] %a = Exp(%x)
        %b = Relu(%a) %y = Clip(%b, %l, %h) }""",
    ),
}


def lost(before: Counter[str], after: Counter[str]) -> Counter[str]:
    return before - after


@pytest.mark.parametrize("name", PATTERNS)
def test_the_pass_fires_on_the_model_and_not_on_the_twin(name: str, tmp_path: Path) -> None:
    kind, text = PATTERNS[name]
    model = made(f"ir 10 opset 21 graph g{text}")
    before = operators(model.graph.nodes)
    assert lost(before, optimised(model, tmp_path)), "nothing to resist"
    for seed in range(6):
        other = Resistant(seed, classes=kind).apply(model)
        assert not lost(before, optimised(other, tmp_path)), f"seed {seed}"
    for strategy in ("gather", "if", "loop"):
        other = Resistant(classes=kind, strategies=strategy).apply(model)
        assert not lost(before, optimised(other, tmp_path)), strategy


def test_an_identity_is_replaced_by_what_stays(tmp_path: Path) -> None:
    model = made("ir 10 opset 21 graph g(%x: float32[3]) -> (%y: float32[3]) "
                 "{ %a = Exp(%x) %b = Identity(%a) %y = Neg(%b) }")  # fmt: skip
    assert lost(operators(model.graph.nodes), optimised(model, tmp_path)) == {"Identity": 1}
    for strategy in ("gather", "if"):
        other = Resistant(classes="identity", strategies=strategy, only="a>b").apply(model)
        assert operators(other.graph.nodes)["Identity"] == 0
        assert not lost(operators(other.graph.nodes), optimised(other, tmp_path))


def test_two_barriers_on_one_value_are_not_merged(tmp_path: Path) -> None:
    """Common subexpressions would become one again, with the calls behind them."""
    model = made("ir 10 opset 21 graph g(%x: float32[3]) -> (%y: float32[3], %z: float32[3]) "
                 "{ %a = Exp(%x) %b = Abs(%a) %c = Abs(%a) %y = Sin(%b) %z = Cos(%c) }")  # fmt: skip
    assert lost(operators(model.graph.nodes), optimised(model, tmp_path)) == {"Abs": 1}
    kept = [
        lost(operators(model.graph.nodes), optimised(Resistant(seed, strategies="gather").apply(model), tmp_path))
        for seed in range(30)
    ]
    assert sum(not some for some in kept) > 24


def test_other_classes_do_not_hold_it(tmp_path: Path) -> None:
    """Barriers are as fine as the classes: resisting layout changes leaves constants to be folded."""
    model = made(f"ir 10 opset 21 graph g{PATTERNS['constants that fold'][1]}".replace("Add(%x, %n)", "Add(%t, %n)")
                 .replace("%n = Exp", "%t = Transpose(%x) {perm=[0]} %n = Exp"))  # fmt: skip
    other = Resistant(classes="layout").apply(model)
    assert "Exp" in lost(operators(model.graph.nodes), optimised(other, tmp_path))


def test_a_barrier_that_may_be_removed_is_no_obstacle(tmp_path: Path) -> None:
    """The pair of transposes goes first, and then the fusion: only what a run alone can know is kept."""
    _, text = PATTERNS["MatMul and Add"]
    model = made(f"ir 10 opset 21 graph g{text}")
    other = Resistant(classes="fusion", strategies="transpose").apply(model)
    assert lost(operators(model.graph.nodes), optimised(other, tmp_path))
