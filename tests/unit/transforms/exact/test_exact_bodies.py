"""Function bodies against operators: onnx's node cases, older operator sets, and generated graphs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from exact_models import Results, run, same, valid

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.tensor import tensor
from miscompile.graph.emit import emit, to_program
from miscompile.graph.model import Model, Node, TensorType
from miscompile.graph.read import read
from miscompile.graph.text.parser import parse_model
from miscompile.ops.registry import schema, version_of
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.slices.node_cases import node_cases
from miscompile.producers.strict import Strict
from miscompile.transforms.exact.bodies import body_of, has_body
from miscompile.transforms.exact.expand import EXACT, Expand

pytestmark = pytest.mark.compiler

WHOLE = Expand(share=1.0, exact=False)
OPERATORS = (
    "AffineGrid", "Attention", "BlackmanWindow", "CausalConvWithState", "Celu", "CenterCropPad", "Clip", "DepthToSpace",
    "Elu", "Gelu", "GreaterOrEqual", "GroupNormalization", "HammingWindow", "HannWindow", "HardSigmoid", "HardSwish",
    "LayerNormalization", "LeakyRelu", "LessOrEqual", "LinearAttention", "LogSoftmax", "MeanVarianceNormalization",
    "Mish", "NegativeLogLikelihoodLoss", "PRelu", "RMSNormalization", "Range", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare", "RotaryEmbedding", "Selu", "Softmax", "SoftmaxCrossEntropyLoss", "Softplus",
    "Softsign", "SpaceToDepth", "SwiGLU", "Swish", "ThresholdedRelu",
)  # fmt: skip
"""Operators whose cases must be among those compared."""

QUIRKS = frozenset({"Range"})
"""Bodies with a Loop: the reference puts what it collects along an axis that is there already."""

OPSETS = (13, 14, 16, 18, 20, 21, 22, 23, 24, 26, 28)


@cache
def cases() -> tuple[tuple[str, Case, Model], ...]:
    """Return the node cases of operators that have a body, with their models."""
    found = []
    for case in node_cases():
        if case.case is None or case.random or "_expanded" in case.name:
            continue
        model = read(case.case.program.payload)
        if any(not node.domain and has_body(node.op, opset) for node in model.graph.nodes for opset in OPSETS):
            found.append((case.name, case.case, model))
    return tuple(found)


def attempt(case: Case, model: Model, target: str) -> Results | None:
    """Return what `target` makes of `model`; None when it refuses it."""
    try:
        return run(case, emit(model), target)
    except Exception:  # noqa: BLE001 - an operator that a target lacks shows in many ways
        return None


def lacking(model: Model, target: str) -> bool:
    """Tell whether a program is of a type that ONNX Runtime has few kernels for: a body's operators may lack one."""
    types = [info.type for info in model.graph.inputs if isinstance(info.type, TensorType)]
    return target == "onnxruntime" and any(kind.dtype == "bfloat16" for kind in types)


def near(ones: Results, others: Results) -> bool:
    """Tell whether results are the same up to rounding: of 16 bits where they have so few."""
    for one, other in (
        (a, b) for first, second in zip(ones, others, strict=True) for a, b in zip(first, second, strict=True)
    ):
        if one is None or other is None or one.dtype != other.dtype or one.shape != other.shape:
            return False
        narrow = one.dtype in ("float16", "bfloat16")
        first, second = one.numbers().astype(np.float64), other.numbers().astype(np.float64)
        if not np.allclose(first, second, rtol=0.02 if narrow else 1e-4, atol=0.02 if narrow else 1e-5, equal_nan=True):
            return False
    return True


def expanded(model: Model, form: Expand = WHOLE) -> Model | None:
    try:
        return form.apply(model)
    except RejectedDraft:
        return None


@pytest.mark.slow
def test_bodies_of_all_node_cases_agree_with_the_operators() -> None:
    compared, left, lacked = Counter[str](), Counter[str](), set[str]()
    for name, case, model in cases():
        op = next((node.op for node in model.graph.nodes if has_body(node.op, model.opset)), "")
        if not op:
            continue
        body = expanded(model)
        if body is None:
            left[op] += 1
            continue
        assert [node.op for node in body.graph.nodes] != [node.op for node in model.graph.nodes]
        assert valid(body), name
        assert (body.graph.inputs, body.graph.outputs) == (model.graph.inputs, model.graph.outputs)
        for target in ("reference", "onnxruntime"):
            if target == "reference" and op in QUIRKS:
                continue
            expected = attempt(case, model, target)
            if expected is None:
                continue
            actual = attempt(case, body, target)
            if actual is None and lacking(body, target):
                lacked.add(name)
                continue
            assert actual is not None, f"{name} on {target}"
            agree = same if op in EXACT else near
            assert agree(expected, actual), f"{name} on {target}"
            compared[f"{op} {target}"] += 1
    assert {name.split()[0] for name in compared} >= set(OPERATORS) - QUIRKS
    assert compared.total() > 600
    assert set(left) == {"Clip", "Attention"}, left
    assert len(lacked) < 10, lacked


def others(model: Model) -> Iterator[Model]:
    """Yield `model` under other operator sets that have its operators and these take its types."""
    for opset in OPSETS:
        if opset != model.opset and all(schema(node.op, opset) is not None for node in model.graph.nodes):
            changed = replace(model, opsets={**model.opsets, "": opset})
            if valid(changed):
                yield changed


@pytest.mark.slow  # every node case at every opset; the newest opset is compared above
def test_bodies_agree_under_other_operator_sets() -> None:
    compared = Counter[str]()
    for name, case, model in cases():
        op = next(node.op for node in model.graph.nodes for opset in OPSETS if has_body(node.op, opset))
        for old in others(model):
            body = expanded(old)
            if body is None:
                continue
            assert valid(body), f"{name} at {old.opset}"
            for target in ("reference", "onnxruntime"):
                expected = None if target == "reference" and op in QUIRKS else attempt(case, old, target)
                if expected is not None:
                    actual = attempt(case, body, target)
                    if actual is None and lacking(body, target):
                        continue
                    assert actual is not None, f"{name} at {old.opset} on {target}"
                    assert near(expected, actual), f"{name} at {old.opset} on {target}"
                    compared[op] += 1
    assert compared.keys() >= {"Relu", "Shrink", "LayerNormalization", "Softmax", "Elu"}
    assert len(compared) > 30
    assert compared.total() > 300


@pytest.mark.slow
def test_generated_graphs_keep_every_bit() -> None:
    """The operators whose bodies are exact, in integers and floats, at every operator set."""
    ops = (
        "CastLike", "Clip", "GreaterOrEqual", "LessOrEqual", "CenterCropPad", "PRelu", "Range", "Add", "Neg", "Where",
    )  # fmt: skip
    options = GeneratorOptions(
        nodes=6, spread=0.0, ops=ops, motifs=0.0, noops=0.0, control=0.0, variants=1, opsets=tuple(range(13, 24))
    )
    producer = Strict(options, Support(open=True))
    compared = Counter[str]()
    for number in range(260):
        case = producer.propose(stream(9, "bodies", number))
        model = read(case.program.payload)
        expected = attempt(case, model, "onnxruntime")
        for form in (Expand(number, 0.7), Expand(number, 0.7, kept=True)):
            body = expanded(model, form) if expected is not None else None
            if body is None:
                continue
            assert valid(body), number
            assert form.exactness(model) == "exact"
            actual = attempt(case, body, "onnxruntime")
            assert actual is not None, number
            assert expected is not None
            assert same(expected, actual), number
            compared["kept" if form.kept else "inlined"] += 1
    assert min(compared["kept"], compared["inlined"]) > 60


def test_a_body_depends_on_the_version_of_the_model() -> None:
    kinds = {"x": TensorType("float32", (2, 3)), "y": TensorType("float32", (2, 3))}
    node = Node("Softmax", ("x",), ("y",))
    old, new = (body_of(node, opset, kinds)[0] for opset in (13, 18))
    assert [len(inner.inputs) for inner in old.nodes] != [len(inner.inputs) for inner in new.nodes]  # axes: an operand
    with pytest.raises(RejectedDraft, match="no body in opset 12"):
        body_of(node, 12, kinds)
    with pytest.raises(RejectedDraft, match="types that are not known"):
        body_of(node, 18, {})
    with pytest.raises(RejectedDraft, match="no body"):
        body_of(Node("Conv", ("x", "y"), ("z",)), 18, kinds)


def test_versions_that_only_widen_are_told_from_others() -> None:
    """Elu's body was written for opset 18; Constant and CastLike have taken more types since, and mean the same."""
    function, call = body_of(Node("Elu", ("x",), ("y",)), 23, {})
    assert function.opsets == {"": 23}
    assert version_of("Constant", 23) > version_of("Constant", 18)
    assert call.attributes["alpha"].value == 1.0
    with pytest.raises(RejectedDraft, match="uses ReduceM"):
        body_of(Node("DynamicQuantizeLinear", ("x",), ("y", "s", "z")), 21, {})


def test_clip_without_a_bound_stays() -> None:
    """Its page has the limits of the type for a bound that is left out, its body nothing; infinity tells them apart."""
    text = """ir 8 opset 18 graph g(%x: float32[2]) -> (%y: float32[2]) {{
        init %b: float32[] = [1.0] %y = Clip({}) }}"""
    assert expanded(parse_model(text.format("%x, %b"))) is None
    assert expanded(parse_model(text.format("%x, _, %b"))) is None
    assert expanded(parse_model(text.format("%x, %b, %b"))) is not None
    assert expanded(parse_model(text.format("%x, %b, %b")), Expand(share=1.0)) is None


def test_a_mapped_sequence_becomes_a_loop() -> None:
    model = parse_model(
        """ir 8 opset 17 graph g(%x: float32[2], %z: float32[2]) -> (%y: float32[2]) {
        init %one: int64[] = [1]
        %s = SequenceConstruct(%x, %z)
        %t = SequenceMap(%s) { body=graph b(%e: float32[2]) -> (%m: float32[2]) { %m = Neg(%e) } }
        %y = SequenceAt(%t, %one) }"""
    )
    feed = tuple(tensor(np.array(values, np.float32)) for values in ([1, 2], [3, -4]))
    case = Case(to_program(model), (feed,))
    body = expanded(model, Expand(share=1.0))
    assert body is not None
    assert "SequenceMap" not in {node.op for node in body.graph.nodes}
    assert same(run(case, emit(model), "onnxruntime"), run(case, emit(body), "onnxruntime"))


def test_bodies_that_are_kept_are_shared() -> None:
    model = parse_model(
        """ir 7 opset 18 graph g(%x: float32[2]) -> (%y: float32[2], %z: float32[2]) {
        %a = LeakyRelu(%x) {alpha=0.5} %y = LeakyRelu(%a) {alpha=0.25} %z = Mish(%a) }"""
    )
    form = Expand(share=1.0, exact=False, kept=True)
    kept = form.apply(model)
    assert valid(kept)
    assert [function.name for function in kept.functions] == ["LeakyRelu_body", "Mish_body"]
    assert [node.attributes["alpha"].value for node in kept.graph.nodes[:2]] == [0.5, 0.25]
    assert kept.ir_version == 8
    assert form.exactness(model) == "rounding"


@pytest.mark.parametrize(("op", "dtype", "replaced"), [
    ("HardSwish", "float32", True), ("HardSwish", "float64", False), ("Mish", "float64", True),
])  # fmt: skip
def test_a_body_whose_numbers_are_rounded_to_float32_replaces_no_operator_on_float64(
    op: str, dtype: str, replaced: bool
) -> None:
    model = parse_model(f"ir 8 opset 18 graph g(%x: {dtype}[2]) -> (%y: {dtype}[2]) {{ %y = {op}(%x) }}")
    assert (expanded(model) is not None) == replaced
