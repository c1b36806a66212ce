"""Flags of IREE's compiler: those of every build, those of a level, and those that serve as passes.

IREE has no switch for a single pass. It has switches for the optimisation level of three pipelines and for a number
of boolean options; each of them is a "pass" here, with the name of the flag that switches it off. This module does
not import IREE.
"""

from collections.abc import Collection

CPU = (
    "--iree-hal-target-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-llvmcpu-debug-symbols=false",
)
"""Flags of a build for the CPU. Debug symbols are off, because they only take time."""

EXACT = (
    "--iree-input-demote-f64-to-f32=false",
    "--iree-vm-target-truncate-unsupported-floats=false",
)
"""Flags of every build. By default IREE computes float64 in float32, and then returns buffers of half the expected
size."""

BASE = (*CPU, *EXACT)

CAPABILITIES = ((6, 0), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9))
"""Compute capabilities that the compiler supports, in order. Newer devices run code for older ones."""

VALUES = {
    "iree-global-optimization-opt-level": "O0",
    "iree-dispatch-creation-opt-level": "O0",
    "iree-llvmcpu-mlir-opt-level": "O0",
    "iree-opt-const-eval": "false",
    "iree-opt-const-expr-hoisting": "false",
    "iree-opt-data-tiling": "false",
    "iree-opt-generalize-matmul": "false",
    "iree-opt-aggressively-propagate-transposes": "false",
    "iree-opt-outer-dim-concat": "false",
    "iree-dispatch-creation-enable-aggressive-fusion": "false",
    "iree-dispatch-creation-fuse-multi-use": "false",
    "iree-llvmcpu-reassociate-fp-reductions": "false",
    "iree-llvmcpu-use-decompose-softmax-fuse": "false",
    "iree-llvmcpu-enable-ukernels": "none",
}
"""Flag without its dashes -> the value that switches it off. Constant evaluation, hoisting, multi-use fusion, softmax
fusion and ukernels are on at O0 too; data tiling is off by default; the others depend on the level."""

SWITCHES = tuple(VALUES)

LEVELS = ("off", "O1", "O2", "O3", "full")


def cuda_flags(capability: tuple[int, int]) -> tuple[str, ...]:
    """Return the flags of a build for the CUDA device of this compute capability, or for the next lower one."""
    major, minor = max((one for one in CAPABILITIES if one <= capability), default=CAPABILITIES[0])
    return ("--iree-hal-target-device=cuda", f"--iree-cuda-target=sm_{major}{minor}")


def flags(level: str, off: Collection[str] = (), device: tuple[str, ...] = CPU) -> tuple[str, ...]:
    """Return the flags of a build at `level` without the switches `off`, for the device with the flags `device`.

    `off` has every switch off and is otherwise level O0; O1 to O3 are IREE's levels; `full` is O3 with
    data tiling, which only the CPU supports. Unknown names in `off` are ignored.
    """
    base = (*device, *EXACT)
    if level == "off":
        return (*base, "--iree-opt-level=O0", *(f"--{name}={value}" for name, value in VALUES.items()))
    number = "O3" if level == "full" else level
    tiles = level == "full" and device == CPU and "iree-opt-data-tiling" not in off
    tiling = ("--iree-opt-data-tiling=true",) if tiles else ()
    switched = tuple(f"--{name}={value}" for name, value in VALUES.items() if name in off)
    return (*base, f"--iree-opt-level={number}", *tiling, *switched)
