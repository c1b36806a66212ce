"""The order of the passes, and the levels."""

from dataclasses import replace

from miscompile.targets.toy.ir import Bugs, Code
from miscompile.targets.toy.passes import (
    arithmetic,
    casts,
    cleanup,
    conditions,
    fatal,
    fusion,
    identities,
    layout,
    moving,
    products,
    quantised,
    selection,
    storage,
)
from miscompile.targets.toy.passes.rewriting import Pass, peephole

PASSES: tuple[Pass, ...] = (
    Pass("ConstantFolding", peephole(cleanup.fold_constants), basic=True),
    Pass("IdentityElimination", peephole(cleanup.drop_identity), basic=True),
    Pass("NoOpElimination", peephole(fatal.tile_of_high_rank, cleanup.drop_no_op), basic=True),
    Pass("CastElimination", peephole(casts.merge_casts), basic=True),
    Pass("TransposeElimination", peephole(layout.compose_transposes), basic=True),
    Pass("ReshapeMerging", peephole(layout.merge_reshapes), basic=True),
    Pass("AddMulNeutral", peephole(arithmetic.drop_neutral), basic=True),
    Pass("OperandOrdering", cleanup.order_operands, basic=True),
    Pass("CommonSubexpression", cleanup.merge_common, basic=True),
    Pass("ShapeCleanup", peephole(layout.clean_shapes)),
    Pass("SliceMerging", peephole(layout.merge_slices)),
    Pass("SplitConcatElimination", peephole(fatal.concat_with_itself, layout.undo_split)),
    Pass("ExpandElimination", peephole(fatal.expand_without_bound, layout.drop_expand)),
    Pass("TransposePushdown", peephole(layout.push_transpose)),
    Pass("CastSinking", peephole(casts.sink_cast)),
    Pass("DivToMul", peephole(arithmetic.div_to_mul)),
    Pass("StrengthReduction", peephole(arithmetic.reduce_strength)),
    Pass("SelfCancellation", peephole(arithmetic.cancel_self)),
    Pass("ZeroAbsorption", peephole(arithmetic.absorb_zero)),
    Pass("DistributeMul", peephole(arithmetic.distribute)),
    Pass("WhereConstant", peephole(arithmetic.choose_constant)),
    Pass("PadConvFusion", peephole(fatal.reflecting_pad, fusion.fuse_pad_conv)),
    Pass("BatchNormFolding", peephole(fusion.fold_batch_norm)),
    Pass("ConvAddFusion", peephole(fusion.fuse_conv_add)),
    Pass("ConvScaleFolding", peephole(fusion.fold_conv_scale)),
    Pass("ReluClipFusion", peephole(fusion.fuse_relu_clip)),
    Pass("ScaleHoisting", peephole(fusion.hoist_scale)),
    Pass("MatMulAddFusion", peephole(fusion.fuse_matmul_add)),
    Pass("ActivationFusion", peephole(fusion.fuse_activation)),
    Pass("ReduceFusion", peephole(fusion.fuse_reductions)),
    Pass("SoftmaxFusion", peephole(fusion.fuse_softmax)),
    Pass("ArgNegFusion", peephole(fatal.chatty_arg_max, fusion.fuse_arg_neg)),
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
    Pass("GemmTranspose", peephole(products.transpose_inside_gemm)),
    Pass("MatMulTranspose", peephole(products.transpose_inside_matmul)),
    Pass("MatMulScaleFolding", peephole(products.scale_weights)),
    Pass("PoolToReduce", peephole(products.reduce_for_pool)),
    Pass("SoftmaxRecognition", peephole(products.recognise_softmax)),
    Pass("DeadCode", cleanup.remove_dead, basic=True),
    Pass("KernelSelection", peephole(selection.select_kernel)),
    Pass("MatMulTiling", peephole(storage.tile_matmul), last=True),
    Pass("BlockTransposition", peephole(storage.block_transpose), last=True),
    Pass("ElementwiseLoop", peephole(storage.fuse_elementwise), last=True),
    Pass("BufferReuse", storage.reuse_buffers, last=True),
)

ROUNDS = 3


def optimise(code: Code, level: str, disabled: frozenset[str], bugs: Bugs) -> tuple[str, ...]:
    """Rewrite `code` in place and return the names of the passes that changed it, in the order of the pipeline.

    The passes run in rounds, because a rewrite of one pass can enable another pass. Level `off` runs nothing.
    """
    if level == "off":
        return ()
    chosen = [entry for entry in PASSES if entry.name not in disabled and (entry.basic or level == "full")]
    return _swept(code, chosen, bugs)


def _swept(code: Code, chosen: list[Pass], bugs: Bugs) -> tuple[str, ...]:
    """Run the chosen passes on a program, and first on the bodies in it."""
    fired = set(_in_bodies(code, chosen, bugs))
    rounds, last = [one for one in chosen if not one.last], [one for one in chosen if one.last]
    for _ in range(ROUNDS):
        changed = {entry.name for entry in rounds if entry.sweep(code, bugs)}
        fired |= changed
        if not changed:
            break
    selection.lower(code, bugs)
    fired |= {entry.name for entry in last if entry.sweep(code, bugs)}
    return tuple(entry.name for entry in PASSES if entry.name in fired)


def _in_bodies(code: Code, chosen: list[Pass], bugs: Bugs) -> set[str]:
    """Rewrite the branches of every If."""
    fired: set[str] = set()
    for call in [call for call in code.calls if call.op == "If"]:
        bodies = {name: call.get(name).copy() for name in conditions.BRANCHES}
        for body in bodies.values():
            fired.update(_swept(body, chosen, bugs))
        code.swap(call, replace(call, attributes={**call.attributes, **bodies}))
    return fired
