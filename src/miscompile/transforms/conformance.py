"""The conformance kit for transforms: whoever writes one calls `check_transform` in a test.

It holds a transform against its contract on small models, with onnx's checker and reference evaluator alone.
"""

from collections.abc import Sequence

import numpy as np

from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.core.tensor import Array, tensor
from miscompile.graph.check import check
from miscompile.graph.emit import emit, model_proto
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.ops.definitions.evaluator import evaluator
from miscompile.transforms.kinds import Transform

_KIND = TensorType("float32", (2, 3))
_CLOSE = 1e-5
"""How far results may lie apart, relative to the largest, where a transform keeps values up to rounding."""


def check_transform(transform: Transform, models: Sequence[Model] = ()) -> int:
    """Hold `transform` against its contract on a model of the kit's own and on `models`, fed small whole numbers.

    The models' inputs are float32 tensors of fixed sizes. Returns the number of models that the transform changes.
    Raises AssertionError that lists every broken promise: a model that is not valid, another signature, another result
    when asked again, other numbers; and when no model is changed, because then nothing was checked.
    """
    found, changed = list[str](), 0
    for place, model in enumerate((_own(), *models)):
        try:
            first = transform.apply(model)
        except RejectedDraft:
            continue
        changed += emit(first) != emit(model)
        found += [f"model {place}: {line}" for line in _broken(transform, model, first)]
    if not changed:
        found.append("no model was changed; give models that have what the transform looks for")
    if found:
        raise AssertionError(
            f"{transform} breaks the contract of transforms:\n" + "\n".join(f"- {one}" for one in found)
        )
    return changed


def _broken(transform: Transform, model: Model, other: Model) -> list[str]:
    found = []
    if emit(transform.apply(model)) != emit(other):
        found.append("the same model gives another one when it is asked again")
    try:
        check(other)
    except ModelError as error:
        return [*found, f"the result is no valid model: {error}"]
    if (other.graph.inputs, other.graph.outputs) != (model.graph.inputs, model.graph.outputs):
        return [*found, "the result has other inputs or outputs"]
    exact = getattr(transform, "exactness", "bits") == "bits"
    for info, one, two in zip(model.graph.outputs, _results(model), _results(other), strict=True):
        if not (tensor(one).same(tensor(two)) if exact else _near(one, two)):
            found.append(f"output {info.name} has other elements")
    return found


def _near(one: Array, two: Array) -> bool:
    reach = max(1.0, float(np.abs(one).max(initial=0.0)))
    return one.shape == two.shape and bool(np.all(np.abs(one - two) <= _CLOSE * reach))


def _results(model: Model) -> list[Array]:
    feed = {}
    for place, info in enumerate(model.graph.inputs):
        assert isinstance(info.type, TensorType), f"input {info.name} is no tensor"
        assert info.type.shape is not None, f"input {info.name} has no sizes"
        sizes = [size for size in info.type.shape if isinstance(size, int)]
        feed[info.name] = (np.arange(np.prod(sizes), dtype=np.float32) % 7 - 2 - place).reshape(sizes)
    results: list[Array] = evaluator(model_proto(model)).run(None, feed)
    return results


def _own() -> Model:
    """Return a model of the usual elementwise operators, a product, and a constant; one output is an inner value."""
    nodes = (
        Node("Add", ("x", "w"), ("a",)),
        Node("Mul", ("a", "z"), ("m",)),
        Node("Neg", ("x",), ("n",)),
        Node("Sub", ("m", "n"), ("s",)),
        Node("Transpose", ("s",), ("t",)),
        Node("MatMul", ("s", "t"), ("p",)),
        Node("Relu", ("p",), ("y",)),
    )
    inputs = (ValueInfo("x", _KIND), ValueInfo("z", _KIND))
    outputs = (ValueInfo("y", TensorType("float32", (2, 2))), ValueInfo("s", _KIND))
    weight = {"w": tensor(np.arange(6, dtype=np.float32).reshape(2, 3))}
    return Model(Graph("g", inputs, outputs, nodes, weight), {"": 18})
