"""Calls of onnxscript's optimiser with a part of it off; standalone scripts contain the functions that they need."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import onnx
import onnx_ir
import onnx_ir.passes.common as onnx_ir_passes
from onnxscript import optimizer as onnxscript_optimizer
from onnxscript import rewriter as onnxscript_rewriter
from onnxscript.optimizer import _constant_folding as onnxscript_folding
from onnxscript.rewriter.rules import common as onnxscript_rules

OTHERS = [
    "affine_conv_fusion",
    "conv_affine_fusion",
    "expand_before_binary_op",
    "fuse_hardswish",
    "matmul_add_to_gemm",
    "transpose_a_matmul_add_to_gemm",
    "transpose_b_matmul_add_to_gemm",
    "transpose_ab_matmul_add_to_gemm",
    "gemm_to_matmul_add",
]
"""Rules beyond the default ones at level `full`, by their exported names without `_rule`."""

STEPS = {
    "inline": "InlinePass",
    "remove_unused_nodes": "RemoveUnusedNodesPass",
    "lift_constants": "LiftConstantsToInitializersPass",
    "lift_subgraph_initializers": "LiftSubgraphInitializersToMainGraphPass",
    "deduplicate_initializers": "DeduplicateInitializersPass",
    "common_subexpressions": "CommonSubexpressionEliminationPass",
    "fix_outputs": "OutputFixPass",
    "fix_names": "NameFixPass",
}
"""Passes of onnx_ir that the optimiser runs."""


def optimise(before: bytes, level: str, off: Collection[str]) -> bytes:
    """Return the model after the rules of a level, without the rules and steps that are `off`."""
    model = onnx.load_model_from_string(before)
    with without(off):
        model = onnxscript_optimizer.optimize(model)
    for name in OTHERS if level == "full" else ():
        if name not in off and rules_called(name):
            model = onnxscript_rewriter.rewrite(model, rules_called(name))
    result: bytes = model.SerializeToString()
    return result


def rules_called(name: str) -> list[onnxscript_rewriter.RewriteRule]:
    """Return the rules of a name beyond the default ones."""
    if name == "fuse_hardswish":
        return list(onnxscript_rules.fuse_hardswish_rules())
    if name == "expand_before_binary_op":
        return list(onnxscript_rules.expand_before_binary_op_rules)
    return [getattr(onnxscript_rules, f"{name}_rule")]


def rule_name(rule: onnxscript_rewriter.RewriteRule) -> str:
    """Return the exported name of a default rule, of which commuted copies exist."""
    for name in onnxscript_rules.__all__:
        if getattr(onnxscript_rules, name) is rule:
            return str(name).removesuffix("_rule")
    first = str(next(iter(rule._target_pattern)).op)
    return {"Mul": "mul_by_1", "Add": "add_0"}.get(first, str(rule.name))


@contextmanager
def without(off: Collection[str]) -> Iterator[None]:
    """Let the optimiser leave out the rules and steps that are `off`."""
    default = onnxscript_rewriter._DEFAULT_REWRITE_RULES
    kept = tuple(rule for rule in default if rule_name(rule) not in off)
    special = onnxscript_folding.registry.op_evaluators
    left = {key: found for key, found in special.items() if f"fold_{key[1]}" not in off}
    with ExitStack() as stack:
        if not kept:  # the pass refuses to be without rules
            stack.enter_context(patch.object(onnxscript_rewriter.RewritePass, "call", unchanged))
        else:
            stack.enter_context(patch.object(onnxscript_rewriter, "_DEFAULT_REWRITE_RULES", kept))
        stack.enter_context(patch.object(onnxscript_folding.registry, "op_evaluators", left))
        if "fold" in off:
            stack.enter_context(
                patch.object(onnxscript_folding._reference_evaluator, "evaluate", lambda *_, **__: None)
            )
        for name in off:
            if name in STEPS:
                kind = getattr(onnx_ir_passes, STEPS[name])
                stack.enter_context(patch.object(kind, "call", unchanged))
        yield


def unchanged(self: object, model: object) -> object:
    """Stand for the work of a pass that is off."""
    return onnx_ir.passes.PassResult(model, modified=False)


def matching(before: bytes, off: Collection[str]) -> list[str]:
    """Return the names of the default rules that rewrite the model if each is applied alone."""
    found = []
    for rule in onnxscript_rewriter._DEFAULT_REWRITE_RULES:
        name = rule_name(rule)
        if name not in off and name not in found:
            model = onnx_ir.serde.deserialize_model(onnx.load_model_from_string(before))
            if rule.apply_to_model(model):
                found.append(name)
    return found
