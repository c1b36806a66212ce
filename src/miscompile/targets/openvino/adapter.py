"""OpenVINO in the worker: models are read from memory, compiled for the CPU, and run through an infer request."""

from collections.abc import Sequence
from typing import Any

import onnx

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor, numpy_name
from miscompile.targets.devices import Gate
from miscompile.targets.external import store
from miscompile.targets.guards import Guarded
from miscompile.targets.openvino import runner
from miscompile.targets.openvino.about import ABOUT, FRAMES, PASSES
from miscompile.targets.openvino.interface import ov
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
"""Element types by the names of OpenVINO."""


class OpenVino:
    """Compiles for the CPU plugin, or for the plugin of Intel's GPUs."""

    def __init__(self) -> None:
        self._core = ov.Core()
        runner.fixed_properties(self._core, "cpu")  # once before the fork, instead of in every worker
        self._gate = Gate(ABOUT.name, {"gpu": lambda: lacks_gpu(self._core)})
        self._observer = Observer.find()

    def build(self, program: Program, build: Build) -> "OpenVinoSession":
        """Compile `program`; passes in `build.disabled` are off if the observer is preloaded.

        One of `TRANSFORMS` may change it. Raises NoDeviceError for a device that is not available, SpecError for a
        transform with invalid options.
        """
        self._gate.pass_for(build.device)
        if self._observer is not None:
            self._observer.begin(build.disabled | _OFF if build.level == "off" else build.disabled)
        transform = own_transform(build.transform, TRANSFORMS)
        read = self._read(program.payload, transform)
        reloads = isinstance(transform, OpenVinoReload) and transform.stage == "compiled"
        compiling = runner.compile_reloaded if reloads else runner.compile_read
        compiled = compiling(self._core, read, build.level, build.device, build.threads)
        guards = transform if isinstance(transform, Guarded) and build.device == "cpu" and _all_plain(program) else None
        return OpenVinoSession(compiled, places(program, read), len(program.outputs), guards)

    def _read(self, model: bytes, transform: object) -> Any:  # noqa: ANN401 - an extension type
        """Return `model` read by the compiler, through files if `transform` requires them."""
        match transform:
            case OpenVinoExternal(seed=seed):
                with scratch() as folder:
                    path = str(folder / "model.onnx")
                    store(onnx.load_model_from_string(model), path, seed, shapes_too=True)
                    return self._core.read_model(path)
            case OpenVinoReload(stage="read"):
                with scratch() as folder:
                    return runner.read_saved(self._core, model, str(folder))
        return self._core.read_model(model)

    def fired(self, log: str) -> tuple[str, ...]:
        """Switchable matchers that changed the graph since the last build began, in the order of their first try."""
        if self._observer is None:
            return ()
        return tuple(name for name in self._observer.fired() if name in _SWITCHABLE)


def lacks_gpu(core: Any) -> list[str]:  # noqa: ANN401 - an extension type
    """Return the missing requirements of Intel's GPU, which only the plugin reports on a query for a device."""
    try:
        core.get_property(runner.PLUGINS["gpu"], "FULL_DEVICE_NAME")
    except RuntimeError as error:
        last = str(error).strip().splitlines()[-1].rpartition(": cannot open")[0].rpartition(": ")[2]
        library = f" ({last} is missing)" if last else ""
        return [
            f"OpenVINO finds no Intel GPU{library}; it needs one, and Intel's compute runtime (the system's package "
            "intel-opencl-icd), the wheel on PyPI has the plugin"
        ]
    return []


def places(program: Program, read: Any) -> list[int | None]:  # noqa: ANN401 - an extension type
    """Return for each input of `program` its number in the compiler's model, None if it was dropped."""
    return runner.places([port.name for port in program.inputs], read, program.payload)


class OpenVinoSession:
    """A compiled model and its infer request.

    `places` are the compiler's numbers of the program's inputs, None for an unused input, which it has dropped. Outputs
    keep their order. With `guards`, inputs and outputs are in memory between guard pages.
    """

    def __init__(
        self,
        compiled: Any,  # noqa: ANN401 - an extension type
        places: Sequence[int | None],
        outputs: int,
        guards: Guarded | None = None,
    ) -> None:
        self._request, self._guards = compiled.create_infer_request(), guards
        self._places = tuple(places)
        self._outputs = range(outputs)

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed."""
        for value in feed:
            if value.dtype not in _DTYPES:
                raise NotImplementedError(f"OpenVINO has no element type for {value.dtype}")
        if self._guards is not None:
            return self._run_guarded(feed, self._guards)
        kinds = [DTYPES[value.dtype].code for value in feed]
        runner.infer(self._request, self._places, [value.array for value in feed], kinds)
        return tuple(_from_tensor(self._request.get_output_tensor(index)) for index in self._outputs)

    def _run_guarded(self, feed: Feed, guards: Guarded) -> tuple[Tensor | None, ...]:
        arrays, count = [value.array for value in feed], len(self._outputs)
        found = runner.infer_guarded(self._request, self._places, arrays, count, guards.place, guards.fill)
        return tuple(Tensor(numpy_name(array.dtype), array) for array in found)


_DTYPES = frozenset(TYPES.values())
_PLAIN = frozenset(TYPES.values()) - {name for name, info in DTYPES.items() if info.code in runner.FOREIGN} - {"string"}


def _all_plain(program: Program) -> bool:
    """Tell whether all inputs and outputs have element types of numpy, and none is of strings."""
    return _PLAIN.issuperset(port.dtype for port in (*program.inputs, *program.outputs))


def _from_tensor(value: Any) -> Tensor:  # noqa: ANN401 - an extension type
    name, array = runner.from_tensor(value)
    if name not in TYPES:
        raise NotImplementedError(f"no element type is known for the compiler's {name}")
    return Tensor(TYPES[name], array)
