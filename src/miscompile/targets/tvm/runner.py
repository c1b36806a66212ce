"""Import, build and execution of a model by TVM; standalone scripts contain the functions that they need.

A build's target, passes and switches are separate arguments of `build_module`, so that a script contains only those
that matter.
"""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import tvm
import tvm_ffi
from numpy.typing import NDArray
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from miscompile.targets.tvm.pipelines import (
    CPU_ONLY,
    CUDA_BUILD,
    FAST_BUILD,
    FULL_BUILD,
    GRAPH_PASSES,
    SLOW_SCHEDULES,
    UNCHECKED,
)

FOREIGN = {
    16: np.dtype(ml_dtypes.bfloat16),
    17: np.dtype(ml_dtypes.float8_e4m3fn),
    18: np.dtype(ml_dtypes.float8_e4m3fnuz),
    19: np.dtype(ml_dtypes.float8_e5m2),
    20: np.dtype(ml_dtypes.float8_e5m2fnuz),
}
"""Element types that numpy lacks and TVM's numpy bridge accepts, by their numbers in onnx.TensorProto."""


def read_model(model: onnx.ModelProto) -> tvm.IRModule:
    """Import a model. The importer treats a size of zero as unknown unless `shape_dict` states it."""
    shapes = {port.name: port.type.tensor_type.shape.dim for port in model.graph.input}
    fixed = {name: [dim.dim_value for dim in dims] for name, dims in shapes.items() if all(map(is_fixed, dims))}
    return from_onnx(model, shape_dict={name: sizes for name, sizes in fixed.items() if 0 in sizes})


def is_fixed(dim: onnx.TensorShapeProto.Dimension) -> bool:
    """Tell whether a dimension has a fixed size."""
    return bool(dim.HasField("dim_value"))


@cache
def cpu_target(level: str) -> tvm.target.Target:
    """Return the target for the CPU: LLVM, which optimises at level `native` only."""
    return tvm.target.Target(FULL_BUILD if level == "native" else FAST_BUILD)


def lowering(level: str, target: tvm.target.Target) -> tvm.transform.Pass:
    """Return the passes that lower a module for the CPU."""
    return relax.get_pipeline("default") if level in ("off", "default") else relax.get_default_pipeline(target)


def behind(passes: Iterable[tuple[str, Sequence[Any]]], pipeline: tvm.transform.Pass) -> tvm.transform.Pass:
    """Return `pipeline` with passes before it, given by their names in `tvm.relax.transform` and their arguments."""
    made = [getattr(relax.transform, name)(*given) for name, given in passes]
    return tvm.transform.Sequential([tvm.transform.Sequential(made), pipeline]) if made else pipeline


def graph_passes(level: str) -> tuple[tuple[str, Sequence[Any]], ...]:
    """Return the graph passes of a level."""
    return GRAPH_PASSES if level in ("full", "native") else ()


def build_module(
    module: tvm.IRModule,
    level: str,
    disabled: Collection[str],
    target: tvm.target.Target,
    pipeline: tvm.transform.Pass,
    instruments: Sequence[Any] = (),
) -> relax.VMExecutable:
    """Compile a module by `pipeline` without the passes `disabled`. Level `off` omits the checks of arguments."""
    with tvm.transform.PassContext(
        opt_level=3,
        disabled_pass=sorted(disabled),
        instruments=list(instruments),
        config={UNCHECKED: level == "off"},
    ):
        mode = "compiled" if level == "compiled" else "bytecode"
        return relax.build(module, target=target, relax_pipeline=pipeline, exec_mode=mode)


def call(machine: relax.VirtualMachine, arrays: Iterable[NDArray[np.generic]], device: tvm.runtime.Device) -> list[Any]:
    """Run on arrays; return the outputs as TVM's objects."""
    result = machine["main"](*[tvm.runtime.tensor(array, device) for array in arrays])
    single = isinstance(result, tvm_ffi.Shape) or hasattr(result, "numpy")  # programs of torch always return tuples
    return [result] if single else list(result)


def to_array(words: NDArray[np.generic], kind: int) -> NDArray[np.generic]:
    """Return an input for TVM; `words` are integers if numpy lacks its type."""
    return words.view(FOREIGN[kind]) if kind in FOREIGN else words


def from_tvm(value: Any) -> NDArray[np.generic]:  # noqa: ANN401 - TVM's objects
    """Copy an output. The value of ONNX's Shape is a tuple of integers in Relax, not a tensor."""
    if isinstance(value, tvm_ffi.Shape):
        return np.asarray(list(value), np.int64)
    array: NDArray[np.generic] = value.numpy()
    return array


def cuda_target(host: tvm.target.Target, arch: str) -> tvm.target.Target:
    """Return the target for a CUDA device of an architecture such as `sm_90`, with its host."""
    return tvm.target.Target({**CUDA_BUILD, "arch": arch}, host=host)


def cuda_passes(level: str) -> tuple[tuple[str, Sequence[Any]], ...]:
    """Return the graph passes of a level for a GPU."""
    return tuple(one for one in graph_passes(level) if one[0] not in CPU_ONLY)


def cuda_lowering(level: str, target: tvm.target.Target) -> tvm.transform.Pass:
    """Return the passes that lower a module for CUDA: TVM's own, or fewer for the plain levels.

    On a GPU every function needs a schedule that binds its loops to threads, which the pipeline for all devices does
    not add.
    """
    if level not in SLOW_SCHEDULES:
        return relax.get_default_pipeline(target)
    dlight = import_module("tvm.s_tir.dlight")
    plain = tvm.transform.Sequential(
        [
            relax.backend.DispatchSampling(),
            relax.backend.DispatchSortScan(),
            relax.transform.LegalizeOps(),
            dlight.ApplyDefaultSchedule(dlight.gpu.Fallback()),
            relax.get_pipeline("default"),
        ]
    )

    def lower(module: tvm.IRModule, context: Any) -> tvm.IRModule:  # noqa: ANN401 - TVM's objects
        del context
        with target:
            return plain(module)

    return tvm.transform.module_pass(lower, opt_level=0)


def compile_exactly() -> None:
    """Remove the option of fast mathematics, which by design rounds divisions and functions differently.

    nvcc has a variable for it. NVRTC always receives the option, so its function is wrapped.
    """
    os.environ["TVM_CUDA_NVCC_NO_FAST_MATH"] = "1"
    try:
        nvrtc: Any = import_module("cuda.bindings.nvrtc")
    except ImportError:
        os.environ["TVM_CUDA_COMPILE_MODE"] = "nvcc"
        return
    nvrtc.nvrtcCompileProgram = exactly(nvrtc.nvrtcCompileProgram)


def exactly(compile_program: Callable[..., Any]) -> Callable[..., Any]:
    """Return NVRTC's function that compiles a program, without the option of fast mathematics."""

    def compile_kernel(program: Any, count: int, options: Sequence[bytes]) -> Any:  # noqa: ANN401 - NVIDIA's objects
        del count
        kept = [option for option in options if option != b"--use_fast_math"]
        return compile_program(program, len(kept), kept)

    return compile_kernel
