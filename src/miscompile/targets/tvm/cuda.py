"""Check of the requirements of TVM's builds for CUDA on this machine."""

import ctypes
import shutil
from importlib.util import find_spec
from pathlib import Path

import tvm
import tvm_ffi

from miscompile.targets.devices import lacks_cuda
from miscompile.targets.tvm.runner import compile_exactly

_LIBRARY = "libtvm_runtime_cuda.so"


def lacks_tvm_cuda() -> list[str]:
    """Return CUDA's missing requirements; when nothing is missing, make TVM compile kernels without fast
    mathematics."""
    found = [lacks_cuda()]
    if tvm.support.libinfo().get("USE_CUDA", "OFF") in ("OFF", "NOT-FOUND"):
        found.append(f"tvm {tvm.__version__} is built without CUDA (USE_CUDA is OFF), apache-tvm 0.27 on PyPI has it")
    elif not found[0]:
        found.append(_lacks_runtime())
    if not _has_bindings() and shutil.which("nvcc") is None:
        found.append("neither NVRTC (pip install 'apache-tvm[cuda]') nor nvcc is here to compile kernels")
    if not any(found):
        compile_exactly()
    return found


def _lacks_runtime() -> str:
    """Return why TVM's CUDA runtime, a separate library, did not load; it is loaded again to obtain the reason."""
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
