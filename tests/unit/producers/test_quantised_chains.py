"""Quantised chains are valid in every opset, leave nothing behind when they fail, and keep the convention of biases."""

import random
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import checker

from miscompile.core.tensor import Tensor
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.producers.finish import finish, leaves
from miscompile.producers.motifs.quantised.chain import QuantisedChain
from miscompile.producers.motifs.quantised.planting import plant_chain
from miscompile.producers.scope import Scope


def scope_of(seed: int, opset: int, support: Support | None = None, *, integral: bool = False) -> Scope:
    return Scope(random.Random(seed), opset, OperatorLimits(), Style(integral), support or Support(open=True))


@pytest.mark.parametrize("opset", [13, 17, 19, 21, 23, 25])
def test_chains_pass_the_full_checker(opset: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(25):
        scope = scope_of(seed, opset)
        planted = plant_chain(scope)
        assert planted is not None
        assert planted.results
        case = finish(scope, leaves(scope), 1, {})
        model = onnx.load_model_from_string(case.program.payload)
        checker.check_model(model, full_check=True)
        seen.update(node.op_type for node in model.graph.node)
        assert not any(port.exact for port in case.program.outputs if port.dtype == "int8")
    assert seen["QuantizeLinear"] > 25
    assert seen["DequantizeLinear"] > 25
    assert len(seen) > 12


def test_a_target_that_takes_nothing_leaves_the_scope_as_it_was() -> None:
    scope = scope_of(0, 21, Support())
    assert plant_chain(scope) is None
    assert not scope.nodes
    assert not scope.operands


def test_small_types_wait_for_the_opset_that_brings_them() -> None:
    kinds = {
        opset: {QuantisedChain(scope_of(seed, opset), False, True).draw_kind() for seed in range(400)}
        for opset in (18, 21)
    }
    assert kinds[18] == {"uint8", "int8"}
    assert {"int4", "uint4", "int16", "float8e4m3fn"} <= kinds[21]
    assert {QuantisedChain(scope_of(seed, 21), True, True).draw_kind() for seed in range(100)} == {"uint8", "int8"}


def test_powers_of_two_are_powers_of_two() -> None:
    scales = QuantisedChain(scope_of(1, 21), False, True).numbers((50,)).array
    assert (np.frexp(scales)[0] == 0.5).all()
    assert not (np.frexp(QuantisedChain(scope_of(1, 21), False, False).numbers((50,)).array)[0] == 0.5).all()


def test_a_bias_has_the_product_of_the_scales() -> None:
    found = 0
    for seed in range(20):
        chain = QuantisedChain(scope_of(seed, 21), True, False)
        x = chain.through(chain.matrix())
        weight, scale = chain.weight((x.shape[-1], 3), 1)
        bias = chain.bias(3, x, scale)
        if bias is None:
            continue
        found += 1
        node = next(node for node in chain.scope.nodes if bias.name in node.outputs)
        product = chain.scope.operands[node.inputs[1]].value
        left = chain.steps_of[x.name].value
        assert product is not None
        assert left is not None
        assert scale.value is not None
        assert np.array_equal(product, np.float32(left * scale.value))
        assert weight.dtype == "float32"
    assert found > 5


def test_a_value_that_was_not_dequantised_gets_no_bias() -> None:
    chain = QuantisedChain(scope_of(3, 21), True, True)
    x = chain.matrix()
    scale = chain.constant(Tensor("float32", np.array(0.5, np.float32)))
    assert all(chain.bias(2, x, scale) is None for _ in range(10))
