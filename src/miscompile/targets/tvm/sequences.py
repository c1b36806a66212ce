"""Sequences of Relax passes: which may stand in any order, and what must be added for an order to be lawful.

HIRFUZZ runs Relay passes in random sequences before the build; these are Relax's, by the names of the functions in
`tvm.relax.transform` that make them. Every sequence over `PASSES`, with repetitions, becomes a lawful pipeline when
`completed` puts in what a pass presupposes; so does every part of one, which delta debugging relies on.
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
"""Passes that keep a module's meaning and may follow one another in any order, with their arguments.

Left out, beside those that `pipelines.py` leaves out: `DataflowUseInplaceCalls`, after which the order of bindings
matters; `RemovePurityChecking`, `CallTIRRewrite` and all behind them, which lower for good; `ComputePrimValue`, whose
functions have no pattern; `AllocateWorkspace`, `AttachAttrLayoutFreeBuffers`, `SplitLayoutRewritePreproc` and
`SpecializePrimFuncBasedOnCallSite`, which concern external code, tuning and GPUs.
"""

NEEDS: Mapping[str, tuple[str, ...]] = {
    "AnnotateTIROpPattern": ("LegalizeOps",),
    "FuseOps": ("LegalizeOps", "AnnotateTIROpPattern"),
    "RewriteDataflowReshape": ("LegalizeOps",),
}
"""What must have run at some time before a pass, which else finds nothing: it looks at loops and their patterns."""


def completed(sequence: Iterable[str]) -> tuple[str, ...]:
    """Return `sequence` with what its passes presuppose put in.

    Whatever `FuseOps` gathers, `FuseTIR` has to make one function of: if it does not come, it is put at the end.
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
    """Return the same as a Python list, a line for each, for a script."""
    rows = [f"    {one!r},\n".replace("'", '"') for one in with_arguments(sequence)]
    return f"[\n{''.join(rows)}]"
