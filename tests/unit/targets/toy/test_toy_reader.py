"""What the toy takes and refuses, and that the conformance kit agrees in this process."""

import random

import numpy as np
import pytest
from toy_bench import InProcessRunner, case, compute, node
from toy_faults import CASES

from miscompile.base.errors import SpecError
from miscompile.core.case import Program
from miscompile.core.run import Build
from miscompile.core.tensor import tensor
from miscompile.execution.conformance import check_target
from miscompile.graph.model import Node
from miscompile.targets.known import known
from miscompile.targets.toy.adapter import ToyAdapter
from miscompile.targets.toy.ir import ToyError, ToyUnsupported
from miscompile.targets.toy.kernels.table import INTERNAL, OPERATORS
from miscompile.targets.toy.reader import read

FULL = Build()


def test_the_toy_keeps_the_contract_in_this_process() -> None:
    check_target("toy", InProcessRunner)


def test_the_kit_notices_a_toy_with_faults_in_this_process() -> None:
    with pytest.raises(AssertionError, match="three feeds, full, feed 0: output 0 has other elements"):
        check_target("toy{bugs=sub_commutes}", InProcessRunner)


def test_it_has_a_good_share_of_the_operators() -> None:
    assert len(OPERATORS) >= 100
    assert not INTERNAL & set(OPERATORS)


@pytest.mark.parametrize(
    ("nodes", "opset"),
    [
        ([node("NonZero", "x", "y")], 21),
        ([node("CheckedGather", "x x", "y")], 21),
        ([node("MaxPool", "x", "y i", kernel_shape=[1])], 21),
        ([node("Cast", "x", "y", to="bfloat16")], 21),
        ([node("Neg", "x", "y")], 11),
    ],
)
def test_what_it_lacks_is_unsupported(nodes: list[Node], opset: int) -> None:
    item = case(nodes, {"x": np.array([[[1]]], np.float32)}, "y", opset=opset)
    with pytest.raises(ToyUnsupported, match="toy has no kernel for") as caught:
        ToyAdapter().build(item.program, FULL)
    rejection = known("toy").rejection("ToyUnsupported", str(caught.value))
    assert rejection is not None
    assert rejection.status == "unsupported"


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Neg", "nowhere", "y")],
        [node("Neg", "x", "z")],
        [node("Neg", "x", "y"), node("Abs", "x", "y")],
        [node("Transpose", "x", "y", perm=[1, 0])],
        [node("Conv", "x x", "y", group=2)],
        [node("Clip", "x w", "y")],
        [node("And", "x x", "y")],
    ],
)
def test_broken_models_are_rejected(nodes: list[Node]) -> None:
    item = case(nodes, {"x": np.ones((1, 4, 3), np.float32)}, "y", {"w": np.array([1, 2, 3], np.float32)})
    with pytest.raises(ToyError, match="toy cannot read this model") as caught:
        ToyAdapter().build(item.program, FULL)
    rejection = known("toy").rejection("ToyError", str(caught.value))
    assert rejection is not None
    assert rejection.status == "rejected"


def test_damaged_bytes_are_refused_and_nothing_worse() -> None:
    rng = random.Random(5)
    payloads = [item.program.payload for item in CASES.values()]
    refused = 0
    for _ in range(600):
        data = bytearray(rng.choice(payloads))
        data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            read(bytes(data))
        except ToyError:
            refused += 1
    assert refused > 100


def test_feeds_that_do_not_fit_are_refused() -> None:
    session = ToyAdapter().build(case([node("Neg", "x", "y")], {"x": np.array([1, 2], np.float32)}, "y").program, FULL)
    for feed in ((), (tensor(np.array([1, 2], np.float64)),), (tensor(np.array([1], np.float32)),)):
        with pytest.raises(ToyError, match="toy wants"):
            session.run(feed)


def test_outputs_are_fresh_memory() -> None:
    item = case([node("Identity", "x", "y"), node("Identity", "x", "z")], {"x": np.array([1, 2], np.float32)}, "y z")
    first, second = compute(item, FULL)
    assert first is not None
    assert second is not None
    first.array[0] = 7
    assert second.array[0] == item.feeds[0][0].array[0] == 1


def test_model_local_functions_are_inlined() -> None:
    from onnx import parser

    text = """<ir_version: 9, opset_import: ["" : 20, "f" : 1]>
    g (float[2] x) => (float[2] y) { y = f.twice(x) }
    <domain: "f", opset_import: ["" : 20]> twice (a) => (b) { b = Add(a, a) }"""
    program = Program("onnx", parser.parse_model(text).SerializeToString(), (), ())
    (found,) = ToyAdapter().build(program, FULL).run((tensor(np.array([1, 2], np.float32)),))
    assert found is not None
    assert found.array.tolist() == [2, 4]


def test_unknown_level() -> None:
    with pytest.raises(SpecError, match="no level 'extreme'"):
        ToyAdapter().build(CASES["sub_commutes"].program, Build(level="extreme"))
