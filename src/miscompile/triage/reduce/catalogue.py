"""The standard reductions, in the order in which they are tried: those that remove the most for one run first."""

from miscompile.triage.reduce.attributes import FewerAttributes, PlainerAttributes
from miscompile.triage.reduce.bodies import BypassDeeper, FewerResults, InnerBranch, OneTurn, PlainerLoops, SameBranch
from miscompile.triage.reduce.capture import Capture
from miscompile.triage.reduce.cuts import BackCut, FrontCut
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.reduce.dtypes import PlainerTypes
from miscompile.triage.reduce.inlining import InlineFunctions, OneBranch
from miscompile.triage.reduce.inputs import ConstantNodes, Frozen, OneFeed, SharedConstants
from miscompile.triage.reduce.names import ShortNames
from miscompile.triage.reduce.nodes import Bypass, BypassInBodies, SameOperand, Shortcut, TypesOf, inferred
from miscompile.triage.reduce.outputs import FewerOutputs
from miscompile.triage.reduce.reduction import Reduction
from miscompile.triage.reduce.shapes import FlatterLeaves, LowerRanks, SmallerSizes
from miscompile.triage.reduce.values import PlainerValues


def standard(capture: Capture, types_of: TypesOf = inferred) -> tuple[Reduction[Draft], ...]:
    """Return the standard reductions; `capture` gives inner values to those that need them, `types_of` their types."""
    return (
        OneFeed(),
        FewerOutputs(),
        BackCut(),
        FrontCut(capture),
        ConstantNodes(),
        Bypass(types_of),
        InlineFunctions(),
        OneBranch(),
        OneTurn(capture),
        InnerBranch(),
        FewerResults(),
        PlainerLoops(),
        Shortcut(),
        BypassInBodies(),
        BypassDeeper(),
        SameBranch(),
        SameOperand(types_of),
        Frozen(),
        SharedConstants(),
        FewerAttributes(),
        LowerRanks(),
        SmallerSizes(),
        PlainerTypes(),
        PlainerValues(),
        PlainerAttributes(),
        FlatterLeaves(),
        ShortNames(),
    )
