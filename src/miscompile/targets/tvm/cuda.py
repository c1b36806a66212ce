"""TVM's builds for CUDA: what they need, their target, and the passes that give loops a schedule for the device."""

import ctypes
import os
import shutil
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tvm
import tvm_ffi
from tvm import relax

from miscompile.targets.devices import cuda_capability, lacks_cuda
from miscompile.targets.tvm.pipelines import CUDA_BUILD, SLOW_SCHEDULES

_FAST_MATH = b"--use_fast_math"
_LIBRARY = "libtvm_runtime_cuda.so"


def lacks_tvm_cuda() -> list[str]:
    """Say what CUDA lacks; when nothing is missing, have TVM compile kernels without fast mathematics."""
    found = [lacks_cuda()]
    if tvm.support.libinfo().get("USE_CUDA", "OFF") in ("OFF", "NOT-FOUND"):
        found.append(f"tvm {tvm.__version__} is built without CUDA (USE_CUDA is OFF), apache-tvm 0.27 on PyPI has it")
    elif not found[0]:
        found.append(_lacks_runtime())
    if not _has_bindings() and shutil.which("nvcc") is None:
        found.append("neither NVRTC (pip install 'apache-tvm[cuda]') nor nvcc is here to compile kernels")
    if not any(found):
        _compile_exactly()
    return found


def _lacks_runtime() -> str:
    """Say why TVM's CUDA runtime, a library of its own, did not load; it is tried again to hear the reason."""
    if tvm_ffi.get_global_func("device_api.cuda", allow_missing=True) is not None:
        return ""
    try:
        ctypes.CDLL(str(Path(tvm.__file__).parent / "lib" / _LIBRARY), ctypes.RTLD_GLOBAL)
    except OSError as error:
        missing = str(error).partition(":")[0]
        return f"TVM's {_LIBRARY} does not load without {missing} (CUDA's: pip install nvidia-cuda-runtime)"
    return ""


def _has_bindings() -> bool:
    try:
        return find_spec("cuda.bindings") is not None
    except ModuleNotFoundError:
        return False


def _compile_exactly() -> None:
    """Take the option of fast mathematics away, which rounds divisions and functions otherwise by design.

    For nvcc there is a variable; NVRTC gets the option always, so that its function is wrapped.
    """
    os.environ["TVM_CUDA_NVCC_NO_FAST_MATH"] = "1"
    if not _has_bindings():
        os.environ["TVM_CUDA_COMPILE_MODE"] = "nvcc"
        return
    nvrtc: Any = import_module("cuda.bindings.nvrtc")
    nvrtc.nvrtcCompileProgram = exactly(nvrtc.nvrtcCompileProgram)


def exactly(compile_program: Callable[..., Any]) -> Callable[..., Any]:
    """Return NVRTC's function that compiles a program, without the option of fast mathematics."""

    def compile_exactly(program: Any, count: int, options: list[bytes]) -> Any:  # noqa: ANN401 - NVIDIA's objects
        del count
        kept = [option for option in options if option != _FAST_MATH]
        return compile_program(program, len(kept), kept)

    return compile_exactly


def cuda_target(host: Any, capability: tuple[int, int] | None = None) -> Any:  # noqa: ANN401 - TVM's objects
    """Return the target for a device of this compute capability (None: the one that is here), with its host."""
    major, minor = cuda_capability() if capability is None else capability
    return tvm.target.Target({**CUDA_BUILD, "arch": f"sm_{major}{minor}"}, host=host)


def cuda_pipeline(level: str, target: Any) -> Any:  # noqa: ANN401 - TVM's objects
    """Return the passes that lower a module for `target`: TVM's own for CUDA, or for the plain levels fewer.

    Loops cannot stay as they are on a GPU: every function needs a schedule that binds its loops to threads, which the
    pipeline for all devices does not give it.
    """
    if level not in SLOW_SCHEDULES:
        return relax.get_default_pipeline(target)
    dlight: Any = import_module("tvm.s_tir.dlight")
    plain = tvm.transform.Sequential(
        [
            relax.backend.DispatchSampling(),
            relax.backend.DispatchSortScan(),
            relax.transform.LegalizeOps(),
            dlight.ApplyDefaultSchedule(dlight.gpu.Fallback()),
            relax.get_pipeline("default"),
        ]
    )

    def lower(module: Any, context: Any) -> Any:  # noqa: ANN401 - TVM's objects
        del context
        with target:
            return plain(module)

    return tvm.transform.module_pass(lower, opt_level=0)
