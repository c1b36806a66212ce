"""The environment variables that JAX and XLA require at their start."""

from miscompile.targets.xla.about import PASSES

PLATFORM = "cpu"

FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_multi_thread_eigen=false",
    "--xla_allow_excess_precision=false",
    f"--xla_disable_hlo_passes={','.join(PASSES)}",
)
"""Flags of compilations without options of their own: those of level `off`, which runs one operation at a time."""


SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""A variable that JAX reads when it opens CUDA; without it each worker reserves three quarters of the device's
memory."""


def prepare() -> dict[str, str]:
    """Return the variables: only the CPU, one thread, no optimisation unless a compilation requests it."""
    return {
        "JAX_PLATFORMS": PLATFORM,
        "XLA_FLAGS": " ".join(FLAGS),
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "TF_CPP_MIN_LOG_LEVEL": "1",
    }
