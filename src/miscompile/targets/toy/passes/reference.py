"""The passes of the reference optimiser: those of the toy, and many more that keep every precondition.

It is a sound optimiser of the size of a real one, from which `mutants.py` derives faulty ones. Without the option
`optimiser` the toy does not use it, so that tests and examples with planted bugs have few passes to look at.
"""

from miscompile.targets.toy.passes import conditions, identities, moving, products, quantised, storage
from miscompile.targets.toy.passes.pipeline import PASSES
from miscompile.targets.toy.passes.rewriting import Pass, peephole

_EXTENSION = (
    Pass("InvolutionElimination", peephole(identities.cancel_involution), basic=True),
    Pass("IdempotenceElimination", peephole(identities.drop_repeated), basic=True),
    Pass("SelfOperandElimination", peephole(identities.drop_self_operand), basic=True),
    Pass("NegatedOperand", peephole(identities.turn_negated_operand)),
    Pass("ConstantReassociation", peephole(identities.reassociate_constants)),
    Pass("MulByMinusOne", peephole(identities.multiply_by_minus_one)),
    Pass("ClipMerging", peephole(identities.merge_clips)),
    Pass("VariadicFlattening", peephole(identities.flatten_variadic)),
    Pass("MulToShift", peephole(identities.multiply_by_shift)),
    Pass("ShiftMerging", peephole(identities.merge_shifts)),
    Pass("ComparisonNegation", peephole(conditions.negate_comparison)),
    Pass("DeMorgan", peephole(conditions.de_morgan)),
    Pass("BooleanConstant", peephole(conditions.settle_boolean)),
    Pass("WhereNegation", peephole(conditions.turn_where)),
    Pass("WhereMerging", peephole(conditions.merge_where)),
    Pass("BranchSelection", peephole(conditions.select_branch), basic=True),
    Pass("BranchMerging", peephole(conditions.merge_branches)),
    Pass("BranchNegation", peephole(conditions.turn_branches)),
    Pass("BranchResultElimination", peephole(conditions.drop_branch_results)),
    Pass("CaptureElimination", peephole(conditions.drop_captures)),
    Pass("ReduceTransposePushdown", peephole(moving.push_transpose_through_reduction)),
    Pass("ConcatTransposePushdown", peephole(moving.push_transpose_through_concat)),
    Pass("TransposeToReshape", peephole(moving.reshape_for_transpose)),
    Pass("ConcatFlattening", peephole(moving.flatten_concat)),
    Pass("SliceElimination", peephole(moving.drop_whole_slice), basic=True),
    Pass("GatherToSlice", peephole(moving.gather_as_slice)),
    Pass("GatherMerging", peephole(moving.merge_gathers)),
    Pass("UnitReduction", peephole(moving.drop_unit_reduction)),
    Pass("PadMerging", peephole(moving.merge_pads)),
    Pass("ExpandMerging", peephole(moving.merge_expands)),
    Pass("TileMerging", peephole(moving.merge_tiles)),
    Pass("TileToExpand", peephole(moving.drop_unit_tile_axes)),
    Pass("ConcatSplitElimination", peephole(moving.undo_concat)),
    Pass("SlicePushdown", peephole(moving.swap_slice_and_unary)),
    Pass("ZeroToExpand", peephole(moving.expand_for_zero)),
    Pass("RequantisationElimination", peephole(quantised.cancel_requantisation)),
    Pass("DequantisationSinking", peephole(quantised.move_before_dequantisation)),
    Pass("QuantisedRelu", peephole(quantised.drop_relu_before_quantisation)),
    Pass("QuantisedTable", peephole(quantised.tabulate)),
    Pass("GemmTranspose", peephole(products.transpose_inside_gemm), rounds=True),
    Pass("MatMulTranspose", peephole(products.transpose_inside_matmul), rounds=True),
    Pass("MatMulScaleFolding", peephole(products.scale_weights), rounds=True),
    Pass("PoolToReduce", peephole(products.reduce_for_pool)),
    Pass("SoftmaxRecognition", peephole(products.recognise_softmax), rounds=True),
)

_CLOSING = (
    Pass("MatMulTiling", peephole(storage.tile_matmul), last=True, rounds=True),
    Pass("BlockTransposition", peephole(storage.block_transpose), last=True),
    Pass("ElementwiseLoop", peephole(storage.fuse_elementwise), last=True),
    Pass("BufferReuse", storage.reuse_buffers, last=True),
)
"""The passes that choose loops and storage."""

_CLEANING = ("DeadCode", "KernelSelection")
"""The passes of the toy that run after all other rewrites of a round."""

REFERENCE_PASSES: tuple[Pass, ...] = (
    *(entry for entry in PASSES if entry.name not in _CLEANING),
    *_EXTENSION,
    *(entry for entry in PASSES if entry.name in _CLEANING),
    *_CLOSING,
)

ROUNDING = frozenset(entry.name for entry in REFERENCE_PASSES if entry.rounds)
"""The passes that change the order or the number of roundings, so that they can also overflow where the program does
not, or the reverse. Compilers that promise IEEE 754 keep such passes behind a flag for fast arithmetic."""
