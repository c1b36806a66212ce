"""Flags of IREE's compiler: those that every build has, those of a level, and those that stand in for passes.

IREE has no switch for a single pass. What can be switched is the optimisation level of three pipelines and a number of
boolean options; each of them is a "pass" here, named like the flag that switches it off. Nothing here imports IREE.
"""

from collections.abc import Collection

CPU = (
    "--iree-hal-target-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-llvmcpu-debug-symbols=false",
)
"""Flags of a build for the CPU. Debug symbols would only cost time."""

EXACT = (
    "--iree-input-demote-f64-to-f32=false",
    "--iree-vm-target-truncate-unsupported-floats=false",
)
"""Flags of every build. IREE computes float64 in float32 unless told otherwise, and then returns buffers of half the
size that callers expect."""

BASE = (*CPU, *EXACT)

CAPABILITIES = ((6, 0), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9))
"""Compute capabilities that the compiler describes, in order. Newer devices run code for older ones."""

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
fusion and ukernels are on at O0 too; data tiling is off unless asked for; the rest goes with the level."""

SWITCHES = tuple(VALUES)

LEVELS = ("off", "O1", "O2", "O3", "full")


def cuda_flags(capability: tuple[int, int]) -> tuple[str, ...]:
    """Return the flags of a build for the CUDA device of this compute capability, or for the last one before it."""
    major, minor = max((one for one in CAPABILITIES if one <= capability), default=CAPABILITIES[0])
    return ("--iree-hal-target-device=cuda", f"--iree-cuda-target=sm_{major}{minor}")


def flags(level: str, off: Collection[str] = (), device: tuple[str, ...] = CPU) -> tuple[str, ...]:
    """Return the flags of a build at `level` without the switches `off`, for the device that `device` are the flags of.

    `off` has every switch off and is level O0 otherwise; O1 to O3 are IREE's own levels as they are; `full` is O3 with
    data tiling, which only the CPU has. Unknown names in `off` are ignored.
    """
    base = (*device, *EXACT)
    if level == "off":
        return (*base, "--iree-opt-level=O0", *(f"--{name}={value}" for name, value in VALUES.items()))
    number = "O3" if level == "full" else level
    tiles = level == "full" and device == CPU and "iree-opt-data-tiling" not in off
    tiling = ("--iree-opt-data-tiling=true",) if tiles else ()
    switched = tuple(f"--{name}={value}" for name, value in VALUES.items() if name in off)
    return (*base, f"--iree-opt-level={number}", *tiling, *switched)
