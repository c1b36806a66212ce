"""The variables that JAX and XLA must be started with."""

from miscompile.targets.xla.about import PASSES

PLATFORM = "cpu"

FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_multi_thread_eigen=false",
    "--xla_allow_excess_precision=false",
    f"--xla_disable_hlo_passes={','.join(PASSES)}",
)
"""Flags of every compilation that names none of its own: those of level `off`, one operation at a time."""


SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""A variable read when CUDA is opened: else each worker takes three quarters of the device's memory for itself."""


def prepare() -> dict[str, str]:
    """Return the variables: the CPU alone, one thread, no optimisation unless a compilation asks for it."""
    return {
        "JAX_PLATFORMS": PLATFORM,
        "XLA_FLAGS": " ".join(FLAGS),
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "TF_CPP_MIN_LOG_LEVEL": "1",
    }
