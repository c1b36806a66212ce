"""Import, compilation and execution of a model by OpenVINO; standalone scripts contain the functions that they need."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from miscompile.targets.guards import guarded, require_intact, target_of, watched
from miscompile.targets.openvino.interface import ov, save_model

PLUGINS = {"cpu": "CPU", "gpu": "GPU"}
"""The compiler's names for devices; the second is Intel's graphics."""

PROPERTIES: dict[str, dict[str, int | str]] = {
    "cpu": {
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32",  # otherwise float32 is computed in bfloat16 if the processor supports it
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",  # otherwise operands of products with compressed weights are quantised
        "KV_CACHE_PRECISION": "f32",
    },
    "gpu": {
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32",  # otherwise float32 is computed in float16
        "EXECUTION_MODE_HINT": "ACCURACY",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
        "KV_CACHE_PRECISION": "f32",
    },
}
"""Properties of every build for a device, which fix the precision to the model's."""

LEVELS: dict[str, dict[str, bool | str]] = {
    "off": {"LP_TRANSFORMS_MODE": False},
    "plain": {"LP_TRANSFORMS_MODE": False, "SNIPPETS_MODE": "DISABLE"},
    "full": {},
}
"""Properties of the levels: without low-precision transformations; without generated kernels for subgraphs (snippets).
Level off keeps snippets, because the kernels that replace them divide and convert small types inexactly."""

FOREIGN = {
    16: ("bf16", 16), 17: ("f8e4m3", 8), 19: ("f8e5m2", 8), 21: ("u4", 4), 22: ("i4", 4), 23: ("f4e2m1", 4),
    24: ("f8e8m0", 8), 25: ("u2", 2),
}  # fmt: skip
"""Element types that numpy lacks, by their numbers in onnx.TensorProto: the compiler's name, and bits of an element."""


@cache
def fixed_properties(core: Any, device: str) -> dict[str, int | str]:  # noqa: ANN401 - an extension type
    """Return the properties of every build that the device's plugin supports; old releases lack some."""
    known = core.get_property(PLUGINS[device], "SUPPORTED_PROPERTIES")
    return {name: value for name, value in PROPERTIES[device].items() if name in known}


def properties_of(
    core: Any,  # noqa: ANN401 - an extension type
    level: str,
    device: str,
    threads: int,
) -> dict[str, bool | int | str]:
    """Return the properties of a build. Only the CPU plugin has levels."""
    fixed = fixed_properties(core, device)
    return {**fixed, **LEVELS[level], "INFERENCE_NUM_THREADS": threads} if device == "cpu" else {**fixed}


def compile_read(core: Any, read: Any, level: str, device: str = "cpu", threads: int = 1) -> Any:  # noqa: ANN401
    """Compile a model that has been read."""
    return core.compile_model(read, PLUGINS[device], properties_of(core, level, device, threads))


def compile_reloaded(core: Any, read: Any, level: str, device: str = "cpu", threads: int = 1) -> Any:  # noqa: ANN401
    """Compile a model that has been read, save the result, and return the model loaded from it."""
    compiled = compile_read(core, read, level, device, threads)
    properties = properties_of(core, level, device, threads)
    return core.import_model(compiled.export_model(), PLUGINS[device], properties)


def read_saved(core: Any, model: bytes, folder: str) -> Any:  # noqa: ANN401 - an extension type
    """Read a model, save it in OpenVINO's format in `folder`, and read the saved one."""
    path = f"{folder}/model.xml"
    save_model(core.read_model(model), path)
    return core.read_model(path)


def places(names: Sequence[str], read: Any, model: bytes) -> list[int | None]:  # noqa: ANN401 - an extension type
    """Return for each input of `model`, by name, its number in the compiler's model, None if it was dropped.

    The front end keeps the order, but drops unused inputs, and renames an input of Dropout to Dropout's output, so
    names alone do not identify inputs. Raises NotImplementedError when an input of the compiler would get no
    elements.
    """
    kept = names
    if len(read.inputs) < len(names):
        used = names_used(onnx.load_model_from_string(model).graph)
        kept = [name for name in names if name in used]
    if len(kept) == len(read.inputs):
        return [kept.index(name) if name in kept else None for name in names]
    found = {name: index for index, port in enumerate(read.inputs) for name in port.get_names() if name in names}
    if len(found) != len(read.inputs):
        raise NotImplementedError("the compiler has dropped and renamed inputs, so that nobody knows which are left")
    return [found.get(name) for name in names]


def names_used(graph: onnx.GraphProto) -> set[str]:
    """Return the names that nodes of `graph` and its subgraphs use, and the names of its outputs.

    Dropout uses only its first operand, because the front end replaces it by that.
    """
    used = {output.name for output in graph.output}
    for node in graph.node:
        used.update(node.input[:1] if node.op_type == "Dropout" else node.input)
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                used |= names_used(inner)
    return used


def infer(
    request: Any,  # noqa: ANN401 - an extension type
    numbers: Sequence[int | None],
    arrays: Sequence[NDArray[np.generic]],
    kinds: Sequence[int],
) -> None:
    """Run on `arrays`, of element types `kinds` (in onnx.TensorProto); `numbers` are those of the compiler's inputs.

    Elements of types that numpy lacks are words, one per element.
    """
    given = [to_tensor(array, kind) for array, kind in zip(arrays, kinds, strict=True)]
    for number, (value, _) in zip(numbers, given, strict=True):
        if number is not None:
            request.set_input_tensor(number, value)
    request.infer()


def infer_guarded(
    request: Any,  # noqa: ANN401 - an extension type
    numbers: Sequence[int | None],
    arrays: Sequence[NDArray[np.generic]],
    count: int,
    place: str,
    fill: int,
) -> list[NDArray[np.generic]]:
    """Run on `arrays` with inputs and `count` outputs between guard pages; return copies of the outputs.

    All have element types of numpy, and no strings. Raises OverrunError when the run has changed memory around an
    output.
    """
    infer(request, numbers, arrays, [0] * len(arrays))  # for the sizes of the outputs
    shown = [np.array(request.get_output_tensor(index).data) for index in range(count)]
    taken = [(number, array) for number, array in zip(numbers, arrays, strict=True) if number is not None]
    inputs = [guarded(str(number), "input", array, place) for number, array in taken]
    targets = [target_of(str(index), array, place, fill) for index, array in enumerate(shown)]
    for guard in inputs:
        request.set_input_tensor(int(guard.name), ov.Tensor(guard.array, shared_memory=True))
    for guard in targets:
        request.set_output_tensor(int(guard.name), ov.Tensor(guard.array, shared_memory=True))
    with watched([*inputs, *targets], fill):
        request.infer()
    require_intact(targets)
    return [np.array(request.get_output_tensor(index).data) for index in range(count)]


def to_tensor(array: NDArray[np.generic], kind: int) -> tuple[Any, NDArray[np.generic]]:
    """Return the compiler's tensor, and the array whose memory it may share."""
    array = np.asarray(array, order="C")
    name, bits = FOREIGN.get(kind, ("", 0))
    if array.dtype == object:
        return ov.Tensor(array.astype(np.str_)), array
    if not hasattr(ov.Type, name):  # numpy has the type, or an older release of the compiler lacks it
        return ov.Tensor(array), array
    memory = array if bits >= 8 else pack(array, bits)
    return ov.Tensor(memory, ov.Shape(array.shape), getattr(ov.Type, name)), memory


def from_tensor(value: Any) -> tuple[str, NDArray[np.generic]]:  # noqa: ANN401 - an extension type
    """Return the compiler's name of an output's type, and a copy of its elements, or words if numpy lacks the type."""
    name = value.element_type.get_type_name()
    if name == "string":
        return name, np.asarray(value.str_data, dtype=object)
    data, bits = np.array(value.data), dict(FOREIGN.values()).get(name, 0)
    if bits == 0:
        return name, data
    if bits >= 8:
        return name, data.view(f"u{bits // 8}").reshape(tuple(value.shape))
    return name, unpack(data.view(np.uint8).ravel(), bits, tuple(value.shape))


def pack(words: NDArray[np.generic], bits: int) -> NDArray[np.uint8]:
    """Put elements of fewer than 8 bits next to each other, the first in the lowest bits."""
    each = 8 // bits
    flat = words.view(np.uint8).ravel() & (1 << bits) - 1
    flat = np.concatenate([flat, np.zeros(-flat.size % each, np.uint8)]).reshape(-1, each)
    lanes = flat << (np.arange(each, dtype=np.uint8) * bits)
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(lanes, axis=1).astype(np.uint8)
    return packed


def unpack(data: NDArray[np.uint8], bits: int, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return the elements of a tensor as words, one a byte."""
    lanes = data[:, None] >> (np.arange(8 // bits, dtype=np.uint8) * bits) & (1 << bits) - 1
    return lanes.astype(np.uint8).ravel()[: int(np.prod(shape))].reshape(shape)
