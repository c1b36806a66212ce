"""The parts of a build level of TVM, as data shared by the adapter and standalone scripts."""

from typing import Any

CONV_LAYOUTS = {"relax.nn.conv2d": ["NHWC", "OHWI"]}
"""The layouts to which `ConvertLayout` converts images and kernels of convolutions."""

GRAPH_PASSES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("ConvertToDataflow", ()),
    ("CanonicalizeBindings", ()),
    ("FoldBatchnormToConv2D", ()),
    ("DecomposeOpsForInference", ()),
    ("FoldConstant", ()),
    ("RemoveRedundantReshape", ()),
    ("EliminateCommonSubexpr", ()),
    ("AdjustMatmulOrder", ()),
    ("ExpandMatmulOfSum", ()),
    ("ReorderTakeAfterMatmul", ()),
    ("CombineParallelMatmul", ()),
    ("ReorderPermuteDimsAfterConcat", ()),
    ("FuseTransposeMatmul", ()),
    ("ConvertLayout", (CONV_LAYOUTS,)),
    ("DeadCodeElimination", ()),
    ("TopologicalSort", ()),
    ("DataflowUseInplaceCalls", ()),
)
"""The optional graph passes of `tvm.relax.transform` that preserve a model's meaning, with their arguments.

Each is at the position that its documentation requires: those that match operators of the graph come before the CPU
pipeline, which turns operators into loops; `ReorderPermuteDimsAfterConcat` after `CombineParallelMatmul`, whose results
it rewrites; `DataflowUseInplaceCalls` last, because it alone determines which buffers are overwritten.
"""

FAST_BUILD, FULL_BUILD = {"kind": "llvm", "opt-level": 0}, {"kind": "llvm"}
"""TVM's target without LLVM's optimisations, which take three quarters of the time, and with them."""

CUDA_BUILD = {
    "kind": "cuda",
    "max_num_threads": 1024,
    "max_threads_per_block": 1024,
    "max_shared_memory_per_block": 49152,
    "thread_warp_size": 32,
}
"""TVM's target for CUDA without its `arch`, with limits that all devices of the last ten years support."""

CPU_ONLY = {"DataflowUseInplaceCalls": "DataflowInsertInPlaceCalls"}
"""Graph passes that are omitted for a GPU, by their names in `PassInfo`, because TVM has no schedule for functions
that overwrite their operands."""

SLOW_SCHEDULES = ("off", "default")
"""Levels whose functions get the plain schedule on a GPU, with a thread for each element; other levels use TVM's
generic schedules."""

UNCHECKED = "tirx.disable_assert"
"""The option that omits the checks of arguments in each function, which are more than half of the machine code."""
