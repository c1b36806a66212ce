"""OpenVINO in the worker: models are read from memory, compiled for the CPU, and run through an infer request."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import openvino as ov

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor
from miscompile.targets.devices import Gate
from miscompile.targets.external import store
from miscompile.targets.openvino.about import ABOUT, FRAMES, GPU_PROPERTIES, LEVELS, PASSES, PROPERTIES
from miscompile.targets.openvino.observer import Observer
from miscompile.targets.openvino.transforms import TRANSFORMS, OpenVinoExternal, OpenVinoReload
from miscompile.targets.presentations import own_transform
from miscompile.targets.scratch import scratch

_SWITCHABLE = frozenset(PASSES)
_OFF = _SWITCHABLE.union(FRAMES)

TYPES = {
    "boolean": "bool",
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "f4e2m1": "float4e2m1",
    "f8e4m3": "float8e4m3fn",
    "f8e5m2": "float8e5m2",
    "f8e8m0": "float8e8m0",
    "i4": "int4",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u2": "uint2",
    "u4": "uint4",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "string": "string",
}
"""Element types by the compiler's names."""

_FOREIGN = {
    dtype: getattr(ov.Type, name)
    for name, dtype in TYPES.items()
    if DTYPES[dtype].storage.name != dtype and hasattr(ov.Type, name)  # older releases know fewer types
}


PLUGINS = {"cpu": "CPU", "gpu": "GPU"}
"""The compiler's names for devices; the second is Intel's graphics."""


class OpenVino:
    """Compiles for the CPU plugin, or for that of Intel's GPUs."""

    def __init__(self) -> None:
        self._core = ov.Core()
        self._fixed = {"cpu": self._known("cpu", PROPERTIES)}
        self._gate = Gate(ABOUT.name, {"gpu": lambda: lacks_gpu(self._core)})
        self._observer = Observer.find()

    def build(self, program: Program, build: Build) -> "OpenVinoSession":
        """Compile `program`; passes named in `build.disabled` stay off if the observer is preloaded.

        It may be changed by one of `TRANSFORMS`. Raises NoDeviceError for a device that is not here, SpecError for a
        transform of other options.
        """
        self._gate.pass_for(build.device)
        if self._observer is not None:
            self._observer.begin(build.disabled | _OFF if build.level == "off" else build.disabled)
        transform = own_transform(build.transform, TRANSFORMS)
        model = self._read(program, transform)
        plugin, properties = PLUGINS[build.device], self._properties(build)
        compiled = self._core.compile_model(model, plugin, properties)
        if isinstance(transform, OpenVinoReload) and transform.stage == "compiled":
            compiled = self._core.import_model(compiled.export_model(), plugin, properties)
        return OpenVinoSession(compiled, places(program, model), len(program.outputs))

    def _read(self, program: Program, transform: object) -> Any:  # noqa: ANN401 - an extension type
        """Return the compiler's model of `program`, by way of files where `transform` says so."""
        match transform:
            case OpenVinoExternal(seed=seed):
                with scratch() as folder:
                    path = str(folder / "model.onnx")
                    store(onnx.load_model_from_string(program.payload), path, seed, shapes_too=True)
                    return self._core.read_model(path)
            case OpenVinoReload(stage="read"):
                model = self._core.read_model(program.payload)
                with scratch() as folder:
                    path = str(folder / "model.xml")
                    ov.save_model(model, path, compress_to_fp16=False)
                    return self._core.read_model(path)
        return self._core.read_model(program.payload)

    def _properties(self, build: Build) -> dict[str, Any]:
        if build.device == "cpu":
            return {**self._fixed["cpu"], **LEVELS[build.level], "INFERENCE_NUM_THREADS": build.threads}
        if build.device not in self._fixed:
            self._fixed[build.device] = self._known(build.device, GPU_PROPERTIES)
        return self._fixed[build.device]

    def _known(self, device: str, wanted: Mapping[str, int | str]) -> dict[str, Any]:
        """Return those of the `wanted` properties that the device's plugin has; old releases lack some."""
        known = self._core.get_property(PLUGINS[device], "SUPPORTED_PROPERTIES")
        return {name: value for name, value in wanted.items() if name in known}

    def passes(self) -> tuple[str, ...]:
        """Matchers that can be switched off; none when the observer is not preloaded."""
        return PASSES if self._observer is not None else ()

    def fired(self, log: str) -> tuple[str, ...]:
        """Switchable matchers that changed the graph since the last build began, in the order of their first try."""
        if self._observer is None:
            return ()
        return tuple(name for name in self._observer.fired() if name in _SWITCHABLE)


def lacks_gpu(core: Any) -> list[str]:  # noqa: ANN401 - an extension type
    """Say what Intel's GPU lacks: nothing tells that but the plugin, when it is asked about a device."""
    try:
        core.get_property(PLUGINS["gpu"], "FULL_DEVICE_NAME")
    except RuntimeError as error:
        last = str(error).strip().splitlines()[-1].rpartition(": cannot open")[0].rpartition(": ")[2]
        library = f" ({last} is missing)" if last else ""
        return [
            f"OpenVINO finds no Intel GPU{library}; it needs one, and Intel's compute runtime (the system's package "
            "intel-opencl-icd), the wheel on PyPI has the plugin"
        ]
    return []


def places(program: Program, model: Any) -> list[int | None]:  # noqa: ANN401 - an extension type
    """Return for each input of `program` its number in the compiler's `model`, None if it was dropped.

    The front end keeps the order, but drops inputs that nothing uses, and gives an input that Dropout passes on the
    name of Dropout's output, so that names alone do not tell. Raises NotImplementedError when an input of the compiler
    would be left without elements.
    """
    names = [port.name for port in program.inputs]
    if len(model.inputs) < len(names):
        graph = onnx.load_model_from_string(program.payload).graph
        used = _used(graph)
        kept = [name for name in names if name in used]
    else:
        kept = names
    if len(kept) == len(model.inputs):
        return [kept.index(name) if name in kept else None for name in names]
    found = {name: index for index, port in enumerate(model.inputs) for name in port.get_names() if name in names}
    if len(found) != len(model.inputs):
        raise NotImplementedError("the compiler has dropped and renamed inputs, so that nobody knows which are left")
    return [found.get(name) for name in names]


def _used(graph: onnx.GraphProto) -> set[str]:
    """Return the names that nodes of `graph` or of graphs inside it read, and those that it returns.

    Dropout does nothing with its ratio and mode: the front end passes its first operand on.
    """
    used = {output.name for output in graph.output}
    for node in graph.node:
        used.update(node.input[:1] if node.op_type == "Dropout" else node.input)
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                used |= _used(inner)
    return used


class OpenVinoSession:
    """A compiled model and its infer request.

    `places` are the numbers that the compiler gives to the program's inputs, None for an input that it has dropped
    because nothing uses it. Outputs keep their order.
    """

    def __init__(self, compiled: Any, places: Sequence[int | None], outputs: int) -> None:  # noqa: ANN401 - an extension type
        self._request = compiled.create_infer_request()
        self._places = tuple(places)
        self._outputs = range(outputs)

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed."""
        given = [_to_tensor(tensor) for tensor in feed]
        for place, (value, _) in zip(self._places, given, strict=True):
            if place is not None:
                self._request.set_input_tensor(place, value)
        self._request.infer()
        return tuple(_from_tensor(self._request.get_output_tensor(index)) for index in self._outputs)


def _to_tensor(tensor: Tensor) -> tuple[Any, Array]:
    """Return the compiler's tensor, and the array whose memory it may share."""
    array = np.asarray(tensor.array, order="C")
    if tensor.dtype == "string":
        return ov.Tensor(array.astype(np.str_)), array
    if tensor.dtype not in _FOREIGN:
        if tensor.dtype not in TYPES.values():
            raise NotImplementedError(f"OpenVINO has no element type for {tensor.dtype}")
        return ov.Tensor(array), array
    packed = _pack(array, DTYPES[tensor.dtype].bits)
    return ov.Tensor(packed, ov.Shape(array.shape), _FOREIGN[tensor.dtype]), packed


def _from_tensor(value: Any) -> Tensor:  # noqa: ANN401 - an extension type
    """Copy a result; elements that numpy has no type for are taken as bits."""
    name = value.element_type.get_type_name()
    dtype = TYPES.get(name)
    if dtype is None:
        raise NotImplementedError(f"no element type is known for the compiler's {name}")
    if dtype == "string":
        return Tensor(dtype, np.asarray(value.str_data, dtype=object))
    if dtype not in _FOREIGN:
        return Tensor(dtype, np.array(value.data))
    info, shape = DTYPES[dtype], tuple(value.shape)
    data = np.array(value.data)
    if info.bits >= 8:
        return Tensor(dtype, data.view(info.storage).reshape(shape))
    return Tensor(dtype, _unpack(data.view(np.uint8).ravel(), info.bits, shape))


def _pack(array: Array, bits: int) -> Array:
    """Put elements of fewer than 8 bits next to each other, the first in the lowest bits."""
    if bits >= 8:
        return array
    each = 8 // bits
    flat = array.ravel() & (1 << bits) - 1
    flat = np.concatenate([flat, np.zeros(-flat.size % each, np.uint8)]).reshape(-1, each)
    packed: Array = np.bitwise_or.reduce(flat << (np.arange(each, dtype=np.uint8) * bits), axis=1)
    return packed.astype(np.uint8)


def _unpack(data: Array, bits: int, shape: tuple[int, ...]) -> Array:
    each = 8 // bits
    lanes = data[:, None] >> (np.arange(each, dtype=np.uint8) * bits) & (1 << bits) - 1
    return lanes.astype(np.uint8).ravel()[: int(np.prod(shape))].reshape(shape)
