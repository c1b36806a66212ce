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

UNCHECKED = "tirx.disable_assert"
"""The option that leaves out each function's checks of its arguments, which are more than half of the machine code."""
