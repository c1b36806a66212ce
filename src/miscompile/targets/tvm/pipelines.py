"""What a build level of TVM consists of, as data that the adapter and the reproducer's lines share."""

from typing import Any

CONV_LAYOUTS = {"relax.nn.conv2d": ["NHWC", "OHWI"]}
"""What `ConvertLayout` is to convert: images and kernels of convolutions."""

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
"""The optional graph passes of `tvm.relax.transform` that keep a model's meaning, with their arguments.

Each stands where its documentation wants it: those that match operators of the graph come before the CPU pipeline,
which turns operators into loops; `ReorderPermuteDimsAfterConcat` after `CombineParallelMatmul`, whose results it is
for; `DataflowUseInplaceCalls` last, because it is the only one that fixes which buffers are overwritten.
"""

FAST_BUILD, FULL_BUILD = {"kind": "llvm", "opt-level": 0}, {"kind": "llvm"}
"""TVM's target without LLVM's own optimisations, which cost three quarters of the time, and with them."""

CUDA_BUILD = {
    "kind": "cuda",
    "max_num_threads": 1024,
    "max_threads_per_block": 1024,
    "max_shared_memory_per_block": 49152,
    "thread_warp_size": 32,
}
"""TVM's target for CUDA, but for its `arch`, with the limits that every device has had for ten years."""

CPU_ONLY = {"DataflowUseInplaceCalls": "DataflowInsertInPlaceCalls"}
"""Graph passes that a GPU does without, with their names in `PassInfo`: TVM has no schedule for functions that
overwrite what they read."""

SLOW_SCHEDULES = ("off", "default")
"""Levels whose functions get the plain schedule on a GPU, a thread for each element; others get tuned-for-all ones."""

UNCHECKED = "tirx.disable_assert"
"""The option that leaves out each function's checks of its arguments, which are more than half of the machine code."""
