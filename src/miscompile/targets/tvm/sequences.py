"""Sequences of Relax passes: passes that may run in any order, and the passes that must be added to make an order
valid.

HIRFUZZ runs Relay passes in random sequences before the build; these are Relax's, by the names of the functions in
`tvm.relax.transform` that make them. Every sequence over `PASSES`, with repetitions, becomes a valid pipeline when
`completed` inserts the presupposed passes. So does every subsequence, which delta debugging requires.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from miscompile.targets.tvm.pipelines import CONV_LAYOUTS

PASSES: Mapping[str, tuple[Any, ...]] = {
    "AdjustMatmulOrder": (),
    "AnnotateTIROpPattern": (),
    "CanonicalizeBindings": (),
    "CombineParallelMatmul": (),
    "ConvertLayout": (CONV_LAYOUTS,),
    "ConvertToDataflow": (),
    "DeadCodeElimination": (),
    "DecomposeOpsForInference": (),
    "EliminateCommonSubexpr": (),
    "ExpandMatmulOfSum": (),
    "ExpandTupleArguments": (),
    "FoldBatchnormToConv2D": (),
    "FoldConstant": (),
    "FuseOps": (),
    "FuseTIR": (),
    "FuseTransposeMatmul": (),
    "InlinePrivateFunctions": (),
    "LambdaLift": (),
    "LegalizeOps": (),
    "Normalize": (),
    "NormalizeGlobalVar": (),
    "OptimizeLayoutTransform": (),
    "RealizeVDevice": (),
    "RemoveRedundantReshape": (),
    "RemoveUnusedOutputs": (),
    "RemoveUnusedParameters": (),
    "ReorderPermuteDimsAfterConcat": (),
    "ReorderTakeAfterMatmul": (),
    "RewriteDataflowReshape": (),
    "ToNonDataflow": (),
    "TopologicalSort": (),
}
"""Passes that preserve a module's meaning and may run in any order, with their arguments.

Omitted, besides those that `pipelines.py` omits: `DataflowUseInplaceCalls`, after which the order of bindings matters;
`RemovePurityChecking`, `CallTIRRewrite` and all later passes, which lower irreversibly; `ComputePrimValue`, whose
functions have no pattern; `AllocateWorkspace`, `AttachAttrLayoutFreeBuffers`, `SplitLayoutRewritePreproc` and
`SpecializePrimFuncBasedOnCallSite`, which concern external code, tuning and GPUs.
"""

NEEDS: Mapping[str, tuple[str, ...]] = {
    "AnnotateTIROpPattern": ("LegalizeOps",),
    "FuseOps": ("LegalizeOps", "AnnotateTIROpPattern"),
    "RewriteDataflowReshape": ("LegalizeOps",),
}
"""The passes that must run before a pass, because it matches loops and their patterns."""


def completed(sequence: Iterable[str]) -> tuple[str, ...]:
    """Return `sequence` with the presupposed passes inserted.

    `FuseTIR` must merge the functions that `FuseOps` groups, so it is appended if it does not follow.
    """
    found: list[str] = []
    for name in sequence:
        found += [needed for needed in NEEDS.get(name, ()) if needed not in found]
        found.append(name)
    gathered = "FuseOps" in found and "FuseTIR" not in found[len(found) - found[::-1].index("FuseOps") :]
    return (*found, "FuseTIR") if gathered else tuple(found)


def with_arguments(sequence: Iterable[str]) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the passes of `sequence`, completed, with their arguments."""
    return [(name, PASSES[name]) for name in completed(sequence)]


def spelled(sequence: Iterable[str]) -> str:
    """Return the same as a Python list for a script, with one line for each pass."""
    rows = [f"    {one!r},\n".replace("'", '"') for one in with_arguments(sequence)]
    return f"[\n{''.join(rows)}]"
