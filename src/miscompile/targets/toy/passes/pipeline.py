"""The order of the passes, the levels, and the function that runs passes in rounds."""

from collections.abc import Callable
from dataclasses import replace

from miscompile.targets.toy.ir import BRANCHES, Bugs, Code
from miscompile.targets.toy.passes import arithmetic, casts, cleanup, fatal, fusion, layout, selection
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
    Pass("BatchNormFolding", peephole(fusion.fold_batch_norm), rounds=True),
    Pass("ConvAddFusion", peephole(fusion.fuse_conv_add), rounds=True),
    Pass("ConvScaleFolding", peephole(fusion.fold_conv_scale), rounds=True),
    Pass("ReluClipFusion", peephole(fusion.fuse_relu_clip)),
    Pass("ScaleHoisting", peephole(fusion.hoist_scale), rounds=True),
    Pass("MatMulAddFusion", peephole(fusion.fuse_matmul_add)),
    Pass("ActivationFusion", peephole(fusion.fuse_activation)),
    Pass("ReduceFusion", peephole(fusion.fuse_reductions)),
    Pass("SoftmaxFusion", peephole(fusion.fuse_softmax), rounds=True),
    Pass("ArgNegFusion", peephole(fatal.chatty_arg_max, fusion.fuse_arg_neg)),
    Pass("DeadCode", cleanup.remove_dead, basic=True),
    Pass("KernelSelection", peephole(selection.select_kernel)),
)

ROUNDS = 3


def optimise(
    code: Code, level: str, disabled: frozenset[str], bugs: Bugs, passes: tuple[Pass, ...] = PASSES
) -> tuple[str, ...]:
    """Rewrite `code` in place and return the names of the passes that changed it, in the order of the pipeline.

    The passes run in rounds, because a rewrite of one pass can enable another pass. Level `off` runs nothing.
    """
    if level == "off":
        return ()
    chosen = [entry for entry in passes if entry.name not in disabled and (entry.basic or level == "full")]
    fired = _simplify(code, [entry for entry in chosen if not entry.last], bugs)
    fired |= _close(code, [entry for entry in chosen if entry.last], bugs)
    return tuple(entry.name for entry in chosen if entry.name in fired)


def _simplify(code: Code, passes: list[Pass], bugs: Bugs) -> set[str]:
    """Run passes in rounds, first on the bodies in a program; return the names of those that changed it."""
    fired = _in_bodies(code, passes, bugs, _simplify)
    for _ in range(ROUNDS):
        changed = {entry.name for entry in passes if entry.sweep(code, bugs)}
        fired |= changed
        if not changed:
            break
    selection.lower(code, bugs)
    return fired


def _close(code: Code, passes: list[Pass], bugs: Bugs) -> set[str]:
    """Run the last passes once; return the names of those that changed the program or a body in it.

    They come after the rounds of the whole program, because a round may take the calls of a body into the program,
    where an operand may have another storage.
    """
    fired = _in_bodies(code, passes, bugs, _close) if passes else set()
    return fired | {entry.name for entry in passes if entry.sweep(code, bugs)}


def _in_bodies(
    code: Code, passes: list[Pass], bugs: Bugs, rewrite: Callable[[Code, list[Pass], Bugs], set[str]]
) -> set[str]:
    """Rewrite the branches of every If."""
    fired: set[str] = set()
    for call in [call for call in code.calls if call.op == "If"]:
        bodies = {name: call.get(name).copy() for name in BRANCHES}
        for body in bodies.values():
            fired |= rewrite(body, passes, bugs)
        code.swap(call, replace(call, attributes={**call.attributes, **bodies}))
    return fired
