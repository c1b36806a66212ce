"""A second judge of nodes: the body that the schema of an operator gives for it as a function.

onnx's reference evaluator implements most operators apart from their bodies, and has bugs of its own. A node on which
the two differ has no certain result.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import defs, inliner

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.emit import emit
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, tensor_of
from miscompile.ops.definitions.evaluator import evaluator
from miscompile.producers.instances.onnx_model import split_api, to_model
from miscompile.producers.instances.onnx_values import from_array, to_array

_TOLERANCE = {"float16": 0.02, "bfloat16": 0.1, "float32": 1e-3, "float64": 1e-6}
"""Greatest difference, relative to the largest element, that rounding in another order may explain."""

_RANDOM = frozenset({"Bernoulli"})
"""Operators with a body whose results are drawn."""

_ROUNDED = frozenset({"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Cast", "CastLike"})
"""Operators with several operands or attributes that round once."""

REFUSES = "the operator's function body refuses it"
DIFFERS = "onnx's reference evaluator and the operator's function body disagree"


def overflows(instance: Instance, results: Mapping[str, object]) -> bool:
    """Tell whether a result is not finite although all operands and attributes are.

    Compilers may then add in another order, and get infinity where others get NaN. An operator that computes each
    element by one rounding, such as Div, Cast and Exp, has no order.
    """
    if instance.api in _ROUNDED or (len(instance.inputs) == 1 and not instance.kwargs and not _reduces(instance)):
        return False
    numbers = [item for value in instance.kwargs.values() for item in (value if isinstance(value, tuple) else (value,))]
    if any(isinstance(item, float) and not np.isfinite(item) for item in numbers):
        return any(not _finite(from_array(value)) for value in results.values())
    if not all(_finite(tensor_of(value)) for value in instance.inputs if isinstance(value, Held | Drawn)):
        return False
    return any(not _finite(from_array(value)) for value in results.values())


def _reduces(instance: Instance) -> bool:
    return instance.api.startswith(("Reduce", "Global")) or instance.api.endswith(("Softmax", "Normalization"))


def _finite(value: Tensor) -> bool:
    return DTYPES[value.dtype].kind not in ("float", "complex") or bool(np.isfinite(value.numbers()).all())


def disagreement(instance: Instance, results: Mapping[str, object]) -> str:
    """Return how the function body of an operator disagrees with `results`, empty if it does not or there is none."""
    domain, op = split_api(instance.api)
    if op in _RANDOM:
        return ""
    body = _inlined(instance, domain, op)
    if body is None:
        return ""
    model, feed = body
    names = [info.name for info in model.graph.output]
    try:
        onnx.shape_inference.infer_shapes(model, strict_mode=True)
        found = evaluator(model).run(names, feed)
        same = all(
            _close(from_array(results[name]), from_array(value)) for name, value in zip(names, found, strict=True)
        )
    except Exception:  # noqa: BLE001 - the evaluator raises anything
        return REFUSES
    return "" if same else DIFFERS


def _inlined(instance: Instance, domain: str, op: str) -> tuple[onnx.ModelProto, dict[str, object]] | None:
    """Return the model of an instance with the body in place of the node, and its feed; None if there is no body."""
    schema = defs.get_schema(op, instance.version, domain)
    if not (schema.has_function or schema.has_context_dependent_function):
        return None
    try:
        model, feed = to_model(instance)
        proto = onnx.load_from_string(emit(model))
        inlined = inliner.inline_selected_functions(proto, [(domain, op)], inline_schema_functions=True)
    except (ModelError, RuntimeError):  # the types of operands that are left out are unknown
        return None
    if any(node.op_type == op and node.domain == domain for node in inlined.graph.node):
        return None
    names = [info.name for info in model.graph.inputs]
    return inlined, {name: to_array(value) for name, value in zip(names, feed, strict=True)}


def _close(one: Tensor, other: Tensor) -> bool:
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    if DTYPES[one.dtype].kind != "float" or not one.array.size:
        return one.same(other)
    first, second = one.numbers().astype(np.float64), other.numbers().astype(np.float64)
    finite = np.isfinite(first)
    if not (np.array_equal(first[~finite], second[~finite], equal_nan=True) and np.isfinite(second[finite]).all()):
        return False
    largest = float(np.abs(first[finite]).max(initial=0.0))
    return bool((np.abs(first - second)[finite] <= _TOLERANCE.get(one.dtype, 0.5) * largest).all())
