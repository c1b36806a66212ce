"""IREE in the worker: ONNX through torch-mlir's importer, compiled in this process, run on the local-sync device."""

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from iree import runtime
from iree.compiler import ir
from iree.compiler.api import Invocation, Output, Session, Source, ctypes_dl
from iree.compiler.extras import onnx_importer

from miscompile.base.dtypes import DTYPES, SMALL
from miscompile.base.errors import SpecError
from miscompile.core.case import Feed, Port, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor, numpy_name
from miscompile.targets.devices import Gate, cuda_capability, lacks_cuda
from miscompile.targets.iree.about import ABOUT
from miscompile.targets.iree.flags import CPU, cuda_flags, flags

ENTRY = "main"
DRIVERS = {"cpu": "local-sync", "cuda": "cuda"}
"""The driver of IREE's runtime for each device."""

_FOREIGN = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}
"""Element types that numpy lacks, as the runtime knows them."""
_NAMES = {np.dtype(foreign): name for name, foreign in _FOREIGN.items()}


class IreeCompileError(RuntimeError):
    """The compiler refused or failed; the message is made of its diagnostics, errors before notes."""


class Iree:
    """Compiles with a session of its own for each program; nothing is kept between builds."""

    def __init__(self) -> None:
        ctypes_dl._initializeGlobalCL("miscompile", "--mlir-disable-threading")
        self._gate = Gate(ABOUT.name, {"cuda": _lacks_cuda})
        self._configs: dict[str, runtime.Config] = {}

    def build(self, program: Program, build: Build) -> "IreeSession":
        """Import and compile `program`.

        Raises SpecError, NoDeviceError, IreeCompileError, and whatever the importer raises.
        """
        if build.level not in ABOUT.levels:
            raise SpecError(f"IREE has no level '{build.level}'; it has: {', '.join(ABOUT.levels)}")
        self._gate.pass_for(build.device)
        device = CPU if build.device == "cpu" else cuda_flags(cuda_capability())
        bytecode = compile_text(import_text(program.payload), flags(build.level, build.disabled, device))
        if build.device not in self._configs:  # not in the constructor: a device belongs to the process that uses it
            self._configs[build.device] = runtime.Config(DRIVERS[build.device])
        return IreeSession(self._configs[build.device], bytecode, program)

    def passes(self) -> tuple[str, ...]:
        """Names of the flags that can be switched off."""
        return ABOUT.passes

    def fired(self, log: str) -> tuple[str, ...]:
        """Nothing: whether a flag made a difference cannot be observed."""
        del log
        return ()


def _lacks_cuda() -> list[str]:
    """Say what CUDA lacks; IREE's wheels have it, but somebody's own build need not."""
    found = [lacks_cuda()]
    if DRIVERS["cuda"] not in runtime.query_available_drivers():
        found.append("this iree-base-runtime is built without CUDA, the one on PyPI has it")
    return found


def import_text(payload: bytes) -> str:
    """Return a serialised ONNX model as MLIR text in the torch dialect, its function called `main`.

    Shapes are inferred first, because the importer wants a type for every value. Raises whatever onnx and the
    importer raise.
    """
    model = onnx.load_from_string(payload)
    model.graph.name = ENTRY
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    with ir.Context() as context:
        info = onnx_importer.ModelInfo(model)
        module = info.create_module(context).operation
        onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
        return str(module)


def compile_text(text: str, options: tuple[str, ...]) -> bytes:
    """Return the bytecode of an imported program. Raises IreeCompileError with the compiler's diagnostics."""
    told: list[tuple[int, str]] = []
    with Session() as session:
        session.set_flags("--iree-input-type=onnx", *options)
        with session.invocation() as invocation, Source.wrap_buffer(session, text.encode() + b"\0") as source:
            callback = _listen(invocation, told)
            try:
                done = invocation.parse_source(source) and invocation.execute()
                if not done:
                    raise IreeCompileError(_message(told))
                with Output.open_membuffer() as output:
                    invocation.output_vm_bytecode(output)
                    return bytes(output.map_memory())
            finally:
                del callback  # alive until here: the compiler holds its address


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_enable = ctypes_dl._dylib.ireeCompilerInvocationEnableCallbackDiagnostics
_enable.restype, _enable.argtypes = None, (ctypes.c_void_p, ctypes.c_int, _CALLBACK, ctypes.c_void_p)
_ERROR = 2
"""IREE_COMPILER_DIAGNOSTIC_SEVERITY_ERROR; notes, warnings and remarks are 0, 1 and 3."""


def _listen(invocation: Invocation, told: list[tuple[int, str]]) -> Any:  # noqa: ANN401 - a ctypes callback
    """Have the compiler's diagnostics appended to `told` as (severity, text)."""

    def note(severity: int, text: int, size: int, user: int | None) -> None:
        del user
        told.append((severity, ctypes.string_at(text, size).decode("utf-8", "replace")))

    callback = _CALLBACK(note)
    _enable(invocation._inv_p, 0, callback, None)
    return callback


def _message(told: list[tuple[int, str]]) -> str:
    ranked = sorted(told, key=lambda item: item[0] != _ERROR)
    return "\n".join(text for _, text in ranked) or "the compiler failed without a diagnostic"


class IreeSession:
    """A compiled module, loaded into a context of its own."""

    def __init__(self, config: runtime.Config, bytecode: bytes, program: Program) -> None:
        context = runtime.SystemContext(config=config)
        context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, bytecode))
        self._context, self._program = context, program
        self._function = context.modules.module[ENTRY]

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed; a single output comes without a tuple around it."""
        device = self._context.config.device
        given = [runtime.asdevicearray(device, _enter(value)) for value in feed]
        results = self._function(*given)
        listed = results if isinstance(results, tuple) else (results,)
        return tuple(_leave(result, port) for result, port in zip(listed, self._program.outputs, strict=True))


def _enter(value: Tensor) -> Array:
    """Return an input as the runtime knows it."""
    if value.dtype in SMALL and value.dtype not in _FOREIGN:
        raise NotImplementedError(f"elements of {value.dtype} cannot be fed")
    array = np.ascontiguousarray(value.array).reshape(value.shape)
    return array.view(_FOREIGN[value.dtype]) if value.dtype in _FOREIGN else array


def _leave(result: Any, port: Port) -> Tensor:  # noqa: ANN401 - a device array
    """Copy an output. IREE's integers have no sign, so that an unsigned type is read off the port."""
    if port.dtype in SMALL and port.dtype not in _FOREIGN:
        raise NotImplementedError(f"elements of {port.dtype} cannot be read")
    array = np.array(result.to_host() if hasattr(result, "to_host") else result)
    if array.dtype in _NAMES:
        name = _NAMES[array.dtype]
        return Tensor(name, array.view(DTYPES[name].storage))
    storage = DTYPES[port.dtype].storage
    if array.dtype.kind in "iu" and storage.kind in "iu" and array.dtype.itemsize == storage.itemsize:
        return Tensor(port.dtype, array.view(storage))
    return Tensor(numpy_name(array.dtype), array)
