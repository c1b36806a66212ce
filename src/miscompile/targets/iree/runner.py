"""Import, compilation and execution of a model by IREE; standalone scripts contain the functions that they need."""

import ctypes
from collections.abc import Collection, Iterable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from iree import runtime
from iree.compiler import ir
from iree.compiler.api import Invocation, Output, Session, Source, ctypes_dl
from iree.compiler.extras import onnx_importer
from numpy.typing import NDArray

ENTRY = "main"
DRIVERS = {"cpu": "local-sync", "cuda": "cuda"}
"""The driver of IREE's runtime for each device."""

FOREIGN = {
    16: np.dtype(ml_dtypes.bfloat16),
    17: np.dtype(ml_dtypes.float8_e4m3fn),
    18: np.dtype(ml_dtypes.float8_e4m3fnuz),
    19: np.dtype(ml_dtypes.float8_e5m2),
    20: np.dtype(ml_dtypes.float8_e5m2fnuz),
}
"""The runtime's element types that numpy lacks, by their numbers in onnx.TensorProto."""

WORDS = {
    2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8", 12: "u4", 13: "u8",
    16: "u2", 17: "u1", 18: "u1", 19: "u1", 20: "u1",
}  # fmt: skip
"""The storage types of integers, and of types that numpy lacks, by the numbers of types in onnx.TensorProto."""


class IreeCompileError(RuntimeError):
    """The compiler refused a program or failed; the message consists of its diagnostics, errors before notes."""


def configure() -> None:
    """Configure the compiler to use no threads; must be called once, before all other calls."""
    ctypes_dl._initializeGlobalCL("iree", "--mlir-disable-threading")


def import_text(payload: bytes) -> str:
    """Return a serialised ONNX model as MLIR text in the torch dialect, its function called `main`.

    Shapes are inferred first, because the importer requires a type for every value. Raises whatever onnx and the
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


def compile_text(text: str, options: Collection[str]) -> bytes:
    """Return the bytecode of an imported program. Raises IreeCompileError with the compiler's diagnostics."""
    told: list[tuple[int, str]] = []
    with Session() as session:
        session.set_flags("--iree-input-type=onnx", *options)
        with session.invocation() as invocation, Source.wrap_buffer(session, text.encode() + b"\0") as source:
            callback = listen(invocation, told)
            try:
                done = invocation.parse_source(source) and invocation.execute()
                if not done:
                    ranked = sorted(told, key=lambda item: item[0] != 2)  # errors first; notes are 0, warnings 1
                    raise IreeCompileError("\n".join(words for _, words in ranked) or "no diagnostic")
                with Output.open_membuffer() as output:
                    invocation.output_vm_bytecode(output)
                    return bytes(output.map_memory())
            finally:
                del callback  # must live until here, because the compiler has its address


def listen(invocation: Invocation, told: list[tuple[int, str]]) -> Any:  # noqa: ANN401 - a ctypes callback
    """Append the compiler's diagnostics to `told` as (severity, text)."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    enable = ctypes_dl._dylib.ireeCompilerInvocationEnableCallbackDiagnostics
    enable.restype, enable.argtypes = None, (ctypes.c_void_p, ctypes.c_int, kind, ctypes.c_void_p)

    def note(severity: int, text: int, size: int, user: int | None) -> None:
        del user
        told.append((severity, ctypes.string_at(text, size).decode("utf-8", "replace")))

    callback = kind(note)
    enable(invocation._inv_p, 0, callback, None)
    return callback


def load(bytecode: bytes, config: runtime.Config) -> runtime.SystemContext:
    """Return a context that has loaded a compiled module."""
    context = runtime.SystemContext(config=config)
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, bytecode))
    return context


def call(context: runtime.SystemContext, arrays: Iterable[NDArray[np.generic]]) -> list[Any]:
    """Run on arrays; a single output is returned without a tuple."""
    device = context.config.device
    results = context.modules.module[ENTRY](*[runtime.asdevicearray(device, array) for array in arrays])
    return list(results) if isinstance(results, tuple) else [results]


def to_array(words: NDArray[np.generic], kind: int) -> NDArray[np.generic]:
    """Return an input as an array of the runtime; `words` are integers if numpy lacks its type."""
    array = np.ascontiguousarray(words).reshape(np.shape(words))
    return array.view(FOREIGN[kind]) if kind in FOREIGN else array


def from_device(result: Any, kind: int) -> NDArray[np.generic]:  # noqa: ANN401 - a device array
    """Copy an output of the type with this number. IREE's integers have no signedness, so the model's type
    determines it."""
    array = np.array(result.to_host() if hasattr(result, "to_host") else result)
    word = np.dtype(WORDS.get(kind, array.dtype))
    return array.view(word) if array.dtype.kind in "iu" and array.itemsize == word.itemsize else array
