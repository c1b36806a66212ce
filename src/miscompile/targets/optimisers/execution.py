"""Checks and execution of a model that an optimiser has returned; standalone scripts contain the functions that they
need.

ONNX Runtime executes the model without optimisations of its own. onnx's reference evaluator is the second executor.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi import _pybind_state as native

from miscompile.targets.ort_values import saturates

_Array = NDArray[np.generic]


class BrokenModelError(Exception):
    """An optimiser has returned a model that is invalid, or that has other inputs or outputs than the original."""


def optimised(model: bytes, optimise: Callable[[bytes], bytes], drops_inputs: bool = False) -> bytes:
    """Return the result of `optimise`, a function from a model to another one, after checking it.

    Raises BrokenModelError for a broken result. With `drops_inputs`, inputs may be missing in it.
    """
    result = optimise(model)
    require_interface(onnx.load_model_from_string(model), onnx.load_model_from_string(result), drops_inputs)
    require_valid(model, result)
    return result


def require_interface(before: onnx.ModelProto, after: onnx.ModelProto, drops_inputs: bool) -> None:
    """Raise BrokenModelError unless both models have inputs and outputs of the same names and element types."""
    for kind, old, new in (
        ("inputs", fed(before), fed(after)),
        ("outputs", declared(before.graph.output), declared(after.graph.output)),
    ):
        kept = {name: code for name, code in old.items() if name in new} if kind == "inputs" and drops_inputs else old
        for wanted, found in zip_longest(kept.items(), new.items()):
            if wanted != found:
                raise BrokenModelError(f"the {kind} have changed: {spelt(found)} instead of {spelt(wanted)}")


def spelt(value: tuple[str, int] | None) -> str:
    """Return the name and the number of the element type of an input or output, in a form that reports can mask."""
    return "nothing" if value is None else f"'{value[0]}' of type {value[1]}"


def fed(model: onnx.ModelProto) -> dict[str, int]:
    """Return the inputs that have no default, with their element types."""
    constants = {one.name for one in model.graph.initializer}
    return {name: code for name, code in declared(model.graph.input).items() if name not in constants}


def declared(values: Sequence[onnx.ValueInfoProto]) -> dict[str, int]:
    """Return the names of values with their element types; 0 stands for other types than tensors."""
    return {value.name: value.type.tensor_type.elem_type for value in values}


def require_valid(before: bytes, after: bytes) -> None:
    """Raise BrokenModelError when onnx's checker refuses the model `after`, but not `before`."""
    try:
        onnx.checker.check_model(after, full_check=True)
    except Exception as error:  # noqa: BLE001 - the checker raises its own classes, and others for broken models
        try:
            onnx.checker.check_model(before, full_check=True)
        except Exception:  # noqa: BLE001 - the checker refuses the original too, for whatever reason
            return
        raise BrokenModelError(f"onnx's checker refuses the optimised model: {error}") from None


def require_sizes(model: onnx.ModelProto, found: Mapping[str, tuple[int, ...]]) -> None:
    """Raise BrokenModelError when an output has another shape than the model declares.

    `found` are the shapes of all inputs and outputs of one run. A symbol must stand for the same size everywhere.
    """
    symbols: dict[str, int] = {}
    for value in (*model.graph.input, *model.graph.output):
        if value.name not in found or not value.type.tensor_type.HasField("shape"):
            continue
        sizes, dims = found[value.name], value.type.tensor_type.shape.dim
        if len(sizes) != len(dims):
            raise BrokenModelError(f"'{value.name}' is declared with {len(dims)} dimensions and has shape {sizes}")
        for size, dim in zip(sizes, dims, strict=True):
            known = dim.dim_value if dim.HasField("dim_value") else symbols.setdefault(dim.dim_param, size)
            if size != known and (dim.HasField("dim_value") or dim.dim_param):
                raise BrokenModelError(f"'{value.name}' has shape {sizes}, which its declared type contradicts")


def start_plain(model: bytes) -> native.InferenceSession:
    """Return a session of ONNX Runtime that optimises nothing."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    if saturates():
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = native.InferenceSession(options, model, False, False)
    session.initialize_session(["CPUExecutionProvider"], [{}], set())
    return session


def evaluate(model: bytes, feed: Mapping[str, _Array]) -> list[_Array | None]:
    """Run on one feed with onnx's reference evaluator, which may write to its operands.

    Element types that numpy lacks are those of ml_dtypes.
    """
    with np.errstate(all="ignore"):
        copies = {name: array.copy() for name, array in feed.items()}
        found: list[_Array | None] = ReferenceEvaluator(onnx.load_model_from_string(model)).run(None, copies)
    return found


def foreign(feed: Mapping[str, _Array], types: Mapping[str, int]) -> dict[str, _Array]:
    """Return the arrays of a feed with the element types that numpy lacks, whose numbers in onnx.TensorProto are
    `types`."""
    named = {name: helper.tensor_dtype_to_np_dtype(kind) for name, kind in types.items()}
    return {name: array.view(named.get(name, array.dtype)) for name, array in feed.items()}
