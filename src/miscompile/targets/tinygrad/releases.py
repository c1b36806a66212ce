"""Where releases of tinygrad keep the internals that the adapter uses; standalone scripts contain what they need of it.

A release is asked for what it has. No version is compared, because internals move between releases, and some go.
"""

import sys
from importlib import import_module
from typing import Any

import tinygrad
from tinygrad import Device

CLANG = (
    "tinygrad.runtime.support.compiler_cpu.ClangCompiler",
    "tinygrad.runtime.support.compiler_cpu.ClangJITCompiler",
    "tinygrad.runtime.ops_cpu.ClangJITCompiler",
)
"""The class that calls clang; the others are those of release 0.12 and 0.11."""

X86 = ("tinygrad.renderer.isa.x86.X86Renderer",)
"""The assembler, which releases before 0.13 lack."""

THREADS = ("tinygrad.runtime.ops_cpu.CPUWorker",)
"""The thread of an open CPU device in releases before 0.14, which a forked process would lack and wait for."""

CACHES = (
    "tinygrad.codegen.to_program_cache",
    "tinygrad.engine.realize.runtime_cache",
    "tinygrad.engine.realize.local_size_cache",
    "tinygrad.engine.realize.method_cache",  # before 0.13
    "tinygrad.schedule.schedule_cache",
    "tinygrad.engine.schedule.schedule_cache",  # 0.12
)
"""Caches of schedules and kernels."""

REWRITES = (
    "tinygrad.uop.divandmod.fold_divmod_general",
    "tinygrad.schedule.indexing._apply_reshape",
    "tinygrad.schedule.indexing.apply_movement_op",
    "tinygrad.codegen.late.coalesce._drop_valid_stmts",
    "tinygrad.codegen.late.devectorizer._drop_valid_stmts",  # 0.13
    "tinygrad.shape.shapetracker.views_to_indexed_uops",  # 0.11
    "tinygrad.shape.shapetracker.views_to_real_strides",  # 0.11
)
"""Functions that cache results of rewriting, which depend on the active rules."""

STAGE_FUNCTIONS = {
    "hand_coded_optimizations": (
        "tinygrad.codegen.opt.hand_coded_optimizations",  # 0.11
        "tinygrad.codegen.opt.heuristic.hand_coded_optimizations",
    ),
    "memory_coalescing": ("tinygrad.codegen.memory_coalescing",),
    "memory_plan_rewrite": (
        "tinygrad.schedule.memory_plan_rewrite",
        "tinygrad.engine.schedule.memory_planner",  # 0.12
        "tinygrad.tensor.memory_planner",  # 0.11
    ),
}
"""Stage -> its function, as the module knows it that calls it; the first that a release has is the one. Release 0.11
has the function of the first stage in both places, and calls it from the first."""


def present(*paths: str) -> list[Any]:
    """Return those of the objects `module.name` that this release has, in the given order."""
    found = []
    for path in paths:
        module, _, name = path.rpartition(".")
        try:
            found.append(getattr(import_module(module), name))
        except (ImportError, AttributeError):
            continue
    return found


def required(*paths: str) -> Any:  # noqa: ANN401 - an object of tinygrad's
    """Return the first of the objects `module.name` that this release has. Raises ImportError when it has none."""
    found = present(*paths)
    if not found:
        raise ImportError(f"this release of tinygrad has no {paths[0]}")
    return found[0]


SETTING = hasattr(tinygrad.helpers, "DEV")
"""Whether the device is a setting; before release 0.13 it is an attribute."""

READS_HALVES = SETTING or sys.version_info >= (3, 12)
"""Whether the device PYTHON has float16: before release 0.13 only where Python's memory views have it."""


def on_device(place: str) -> dict[str, str]:
    """Return the setting that selects the device `place`; where there is none, this selects it."""
    if SETTING:
        return {"DEV": place}
    Device.DEFAULT = place
    return {}


IMPORTER = required("tinygrad.nn.onnx.OnnxRunner", "tinygrad.frontend.onnx.OnnxRunner")
"""The reader of ONNX models; the second is that of release 0.11. Older releases have none in their packages."""
