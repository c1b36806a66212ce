"""What the tests of resistance share: runs in ONNX Runtime, values that are hard on barriers, and small models."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import RejectedDraft
from miscompile.core.case import Feed, Port, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.emit import emit
from miscompile.graph.model import Model, Node, TensorType
from miscompile.graph.text.parser import parse_model
from miscompile.targets.onnxruntime.adapter import OnnxRuntime
from miscompile.transforms.resist.transform import Resistant

RUNTIME = OnnxRuntime()

BRANCHES = """ir 8 opset 17 graph g(%x: float32[2,3], %w: float32[2,3]) -> (%y: float32[2,3], %z: float32[2,3]) {
  init %c: float32[] = [2.0]
  %a = Neg(%x) %b = Exp(%a) %y = Mul(%b, %c)
  %p = Abs(%w) %q = Sqrt(%p) %z = Add(%q, %q)
}"""

BODIES = """ir 8 opset 17 graph g(%x: float32[2,3], %c: bool[]) -> (%y: float32[2,3], %s: float32[2,3]) {
  init %w: float32[2,3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
  init %three: int64[] = [3]
  init %yes: bool[] = [true]
  %a = Neg(%x)
  %b = If(%c) {
    then_branch=graph t() -> (%t2) { %t1 = Add(%a, %w) %t2 = Mul(%t1, %t1) },
    else_branch=graph e() -> (%e2) { %e1 = Relu(%y) %e2 = Sub(%e1, %a) }
  }
  %s = Loop(%three, %yes, %b) {
    body=graph l(%i: int64[], %go: bool[], %v: float32[2,3]) -> (%still: bool[], %v2: float32[2,3]) {
      %still = Identity(%go) %v1 = Mul(%v, %w) %v2 = Add(%v1, %y)
    }
  }
}""".replace("%a = Neg(%x)", "%a = Neg(%x) %y = Exp(%a)")
"""Bodies that read inner values, a constant, and a value that is a graph output as well."""


def made(text: str) -> Model:
    """Return the model that `text` says."""
    return parse_model(text)


def twin(model: Model, form: Resistant) -> Model | None:
    """Return the twin of `model`, None when it has none."""
    try:
        return form.apply(model)
    except RejectedDraft:
        return None


def program(model: Model) -> Program:
    """Return `model` with its ports; outputs whose type it does not say count as float32."""
    graph = model.graph
    inputs = tuple(_port(info.name, info.type) for info in graph.inputs)
    return Program("onnx", emit(model), inputs, tuple(_port(info.name, info.type) for info in graph.outputs))


def _port(name: str, known: object) -> Port:
    return Port(name, known.dtype, known.shape) if isinstance(known, TensorType) else Port(name, "float32", None)


def run(target: Program, feed: Feed, level: str = "off") -> tuple[Tensor | None, ...]:
    """Build and run a program in this process."""
    return RUNTIME.build(target, Build(level)).run(feed)


def assert_twins_agree(
    model: Model, twins: Sequence[Model], feed: Feed, *, zeros: bool = False, rounded: bool = False
) -> int:
    """Run a model and its twins without optimisation: outputs must agree to the bit (`zeros`: but for their sign).

    With `rounded` floats may differ by a rounding, because kernels add in an order that depends on addresses. Returns
    the number of outputs that do.
    """
    target = program(model)
    expected, differing = run(target, feed), 0
    for other in twins:
        found = run(replace(target, payload=emit(other)), feed)
        for port, one, two in zip(target.outputs, expected, found, strict=True):
            assert one is not None
            assert two is not None
            if not agree(one, two, zeros=zeros):
                differing += 1
                may_round = rounded and DTYPES[one.dtype].kind == "float"
                assert may_round, f"{port.name}: {one.array!r} became {two.array!r}"
                assert (one.dtype, one.shape) == (two.dtype, two.shape), port.name
                np.testing.assert_allclose(one.numbers(), two.numbers(), rtol=1e-5, err_msg=port.name)
    return differing


def agree(first: Tensor, second: Tensor, *, zeros: bool = False) -> bool:
    """Tell whether both have the same bits; any NaN is like any other."""
    if first.same(second):
        return True
    if (first.dtype, first.shape) != (second.dtype, second.shape) or DTYPES[first.dtype].kind != "float":
        return False
    one, two = first.numbers(), second.numbers()
    same = one == two if zeros else (one == two) & (np.signbit(one) == np.signbit(two))
    return bool((same | (np.isnan(one) & np.isnan(two))).all())


def special(dtype: str, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor of NaN, infinities, zeros of both signs and the least and greatest values, in this order."""
    info = DTYPES[dtype]
    if info.kind == "bool":
        values = np.array([True, False] * 4)
    elif info.kind == "float":
        tiny = float(np.finfo(np.float16).smallest_subnormal)
        values = np.array([-0.0, np.nan, np.inf, -np.inf, 0.0, info.low, info.high, tiny])
    else:
        values = np.array([int(info.low), int(info.high), 0, 1, 2, 3, 5, 7], info.storage)
    count = int(np.prod(shape))
    return tensor(np.resize(values, count).reshape(shape), dtype)


def optimised(model: Model, folder: Path) -> Counter[str]:
    """Return how many calls of each operator a fully optimised build of ONNX Runtime keeps in its main graph."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    options.log_severity_level = 4
    ort.InferenceSession(emit(model), options, providers=["CPUExecutionProvider"])
    return Counter(node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node)


def operators(nodes: Sequence[Node]) -> Counter[str]:
    """Return how many calls of each operator there are."""
    return Counter(node.op for node in nodes)
