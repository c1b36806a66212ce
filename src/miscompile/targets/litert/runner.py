"""Models of LiteRT's format from symbolic tensors, and their execution; standalone scripts contain the functions that
they need."""

import warnings
from collections.abc import Collection, Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from miscompile.targets.litert.names import DELEGATE, NODE_FUSION, REUSE
from miscompile.targets.litert.tensors import LiteCall, LiteValue, reshaped

KERNELS = {
    "off": OpResolverType.BUILTIN_REF,
    "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "full": OpResolverType.BUILTIN,
}
"""The kernels of each level: the reference ones, the optimised ones, and the XNNPACK delegate before these."""

VERSIONS = {"BROADCAST_TO": 2}
"""The first version of an operator where that is not 1."""


class AlignedBuffer(schema.BufferT):  # type: ignore[misc]  # the schema is not read by the type checker
    """A constant whose bytes begin at a multiple of 16, as the format requires and numpy vectors do not."""

    def Pack(self, builder: Any) -> Any:  # noqa: ANN401, N802 - the schema's own name
        """Write the buffer."""
        data, size = None, 0 if self.data is None else len(self.data)
        if size:
            builder.StartVector(1, size, 16)
            builder.head -= size
            builder.Bytes[builder.head : builder.head + size] = self.data
            builder.vectorNumElems = size
            data = builder.EndVector()
        schema.BufferStart(builder)
        if data is not None:
            schema.BufferAddData(builder, data)
        return schema.BufferEnd(builder)


def model_of(inputs: Sequence[LiteValue], outputs: Sequence[LiteValue]) -> bytes:
    """Return the model that computes `outputs` from `inputs`.

    A result that is an input, a constant or another result is copied.
    """
    given, results = {id(value) for value in inputs}, list[LiteValue]()
    for value in outputs:
        known = id(value) in given or value.array is not None
        results.append(reshaped(value, value.shape) if known else value)
        given.add(id(value))
    calls, order = list[LiteCall](), {id(value): value for value in inputs}
    for value in results:
        collect_calls(value, calls, order)
    order |= {id(one): one for call in calls for one in call.results}
    places = {key: place for place, key in enumerate(order)}
    graph = schema.SubGraphT()
    graph.name = "main"
    buffers = [AlignedBuffer()]
    graph.tensors = [entry_of(value, f"t{place}", buffers) for place, value in enumerate(order.values())]
    graph.inputs = [places[id(value)] for value in inputs]
    graph.outputs = [places[id(value)] for value in results]
    codes = list(dict.fromkeys(call.code for call in calls))
    graph.operators = [operator_of(call, codes.index(call.code), places) for call in calls]
    model = schema.ModelT()
    model.version, model.subgraphs, model.buffers = 3, [graph], buffers
    model.operatorCodes = [code_of(code) for code in codes]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def collect_calls(value: LiteValue, calls: list[LiteCall], order: dict[int, LiteValue]) -> None:
    """Append the calls that compute `value` after those of their operands; enter constants into `order`."""
    if value.array is not None:
        order[id(value)] = value
    if value.call is not None and value.call not in calls:
        for operand in value.call.operands:
            collect_calls(operand, calls, order)
        calls.append(value.call)


def entry_of(value: LiteValue, name: str, buffers: list[Any]) -> Any:  # noqa: ANN401 - of the schema
    """Return the table of a tensor; append the bytes of a constant to `buffers`."""
    entry = schema.TensorT()
    entry.shape, entry.type, entry.name = list(value.shape), getattr(schema.TensorType, value.dtype.upper()), name
    entry.hasRank, entry.buffer = True, 0
    if value.array is not None:
        buffers.append(AlignedBuffer())
        buffers[-1].data, entry.buffer = value.array.tobytes(), len(buffers) - 1
    return entry


def operator_of(call: LiteCall, code: int, places: dict[int, int]) -> Any:  # noqa: ANN401 - of the schema
    """Return the table of a call."""
    entry = schema.OperatorT()
    entry.opcodeIndex = code
    entry.inputs = [places[id(value)] for value in call.operands]
    entry.outputs = [places[id(value)] for value in call.results]
    if call.options:
        options = getattr(schema, f"{call.options}T")()
        for name, value in call.fields.items():
            setattr(options, name, value)
        entry.builtinOptionsType = getattr(schema.BuiltinOptions, call.options)
        entry.builtinOptions = options
    return entry


def code_of(name: str) -> Any:  # noqa: ANN401 - of the schema
    """Return the table of an operator's code; a code below 127 also stands in the field of older readers."""
    entry = schema.OperatorCodeT()
    entry.builtinCode = getattr(schema.BuiltinOperator, name)
    entry.deprecatedBuiltinCode = min(entry.builtinCode, 127)
    entry.version = VERSIONS.get(name, 1)
    return entry


def start(model: bytes, level: str, off: Collection[str] = ()) -> Any:  # noqa: ANN401 - an interpreter
    """Return an interpreter of a model, without what is `off`."""
    kernels = KERNELS["builtin" if level == "full" and DELEGATE in off else level]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # keeping all tensors warns of its memory
        made = Interpreter(
            model_content=model,
            num_threads=1,
            experimental_op_resolver_type=kernels,
            experimental_preserve_all_tensors=REUSE in off,
            experimental_disable_delegate_node_fusion=NODE_FUSION in off,
        )
    made.allocate_tensors()
    return made


def run_arrays(session: Any, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:  # noqa: ANN401
    """Run on arrays in the order of the inputs; return the outputs."""
    for detail, array in zip(session.get_input_details(), arrays, strict=True):
        session.set_tensor(detail["index"], np.ascontiguousarray(array).reshape(np.shape(array)))
    session.invoke()
    return [session.get_tensor(detail["index"]) for detail in session.get_output_details()]
