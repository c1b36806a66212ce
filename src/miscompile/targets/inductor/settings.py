"""Settings of Inductor: those of every build, those of a level, and those that switch passes off."""

from collections.abc import Callable, Iterable
from typing import Any

ALWAYS = {
    "compile_threads": 1,
    "fx_graph_cache": False,
    "fx_graph_remote_cache": False,
    "autotune_local_cache": False,
    "cpp.vec_isa_ok": True,
}
"""No pool of compiling processes; no cached results, because the passes would not run; no trial compilations."""

CUDA_SETTINGS = {"deterministic": True}
"""Additional settings for CUDA: no selection of kernels by their time, because their sums differ."""

LEVELS: dict[str, dict[str, Any]] = {
    "fallback": {"fallback_by_default": True},
    "nopasses": {
        "use_pre_grad_passes": False,
        "use_joint_graph_passes": False,
        "pattern_matcher": False,  # the passes after it must run: they decompose scans
        "epilogue_fusion": False,
        "max_fusion_size": 1,
        "cpp.max_horizontal_fusion_size": 1,
        "inplace_buffers": False,
        "allow_buffer_reuse": False,
    },
    "full": {},
}
"""Settings of the levels that compile."""

SETTINGS: dict[str, dict[str, Any]] = {
    "pick_loop_orders": {"pick_loop_orders": False},
    "split_reductions": {"split_reductions": False},
    "unroll_reductions": {"unroll_reductions_threshold": 1},
    "constant_and_index_propagation": {"constant_and_index_propagation": False},
    "comprehensive_padding": {"comprehensive_padding": False},
    "layout_optimization": {"layout_optimization": False},
    "scheduler_fusion": {"max_fusion_size": 1},
    "epilogue_fusion": {"epilogue_fusion": False},
    "loop_ordering_after_fusion": {"loop_ordering_after_fusion": False},
    "horizontal_fusion": {"cpp.max_horizontal_fusion_size": 1},
    "reorder_for_peak_memory": {"reorder_for_peak_memory": False},
    "loop_tail_vectorization": {"cpp.enable_loop_tail_vec": False},
    "tiling_heuristics": {"cpp.enable_tiling_heuristics": False},
    "inplace_buffers": {"inplace_buffers": False},
    "buffer_reuse": {"allow_buffer_reuse": False},
}
"""For each pass that is a setting, the value that switches it off.

Vectorisation is switched by a hook, because its setting changes the flags of the C++ compiler, which requires
another header.
"""


def settings_of(level: str, off: Iterable[str], known: Callable[[str], bool]) -> dict[str, Any]:
    """Return the settings of Inductor for `level` without the passes `off`, omitting those that are not `known`."""
    wanted = dict(LEVELS[level])
    for name in sorted(off):
        wanted.update(SETTINGS.get(name, {}))
    return {name: value for name, value in wanted.items() if known(name)}
