"""Run a file of onnxscript's tests and store the model before every rewrite rule or pass, with its name.

`python -m miscompile.harvest.patterns.hooks.onnxscript TESTFILE OUT`.
Rules are recorded where a set of rules is applied: each rule that rewrites something is a pair; if none does, the
set is a pair without a change. Passes are recorded in the call of their base class, except passes that only call
others.
"""

# ruff: noqa: ANN401 - onnxscript is not asked for its types

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from miscompile.harvest.patterns.hooks.recording import PairRecorder, line_of, main, nothing

_BOOKKEEPING = frozenset(
    {"NameFixPass", "CheckerPass", "ShapeInferencePass", "TopologicalSortPass", "ClearMetadataAndDocStringPass"}
)
"""Passes that optimise nothing."""


def install(recorder: PairRecorder) -> Callable[[], None]:
    """Hook the application of rules and the call of passes; the returned function does nothing after a test.

    onnxscript is imported here because it may be the package in the folder of the tests.
    """
    used: list[list[str]] = []  # the rules that rewrote something, for each active application of a set
    _hook_rules(used)
    _hook_sets(recorder, used)
    _hook_passes(recorder)
    return nothing


def _hook_rules(used: list[list[str]]) -> None:
    rule = import_module("onnxscript.rewriter").RewriteRule
    original = rule.try_rewrite

    @functools.wraps(original)
    def attempt(self: Any, *args: Any, **words: Any) -> Any:
        found = original(self, *args, **words)
        if found is not None and used:
            used[-1].append(rule_name(self))
        return found

    rule.try_rewrite = attempt


def _hook_sets(recorder: PairRecorder, used: list[list[str]]) -> None:
    rules = import_module("onnxscript.rewriter").RewriteRuleSet
    original = rules.apply_to_model

    @functools.wraps(original)
    def apply(self: Any, model: Any, *args: Any, **words: Any) -> Any:
        before = encode_model(recorder, model)
        used.append([])
        try:
            return original(self, model, *args, **words)
        finally:
            names = dict.fromkeys(used.pop())
            if before is not None:
                _write(recorder, before, list(names), [rule_name(rule) for rule in self.rules])

    rules.apply_to_model = apply


def _write(recorder: PairRecorder, model: bytes, names: list[str], asked: list[str]) -> None:
    for name in names:
        recorder.pair(model, name, changed=True)
    if not names:
        recorder.pair(model, asked[0] if len(asked) == 1 else "", changed=False)


def _hook_passes(recorder: PairRecorder) -> None:
    passes, model_type = import_module("onnx_ir.passes"), import_module("onnx_ir").Model
    frames = passes.Sequential, import_module("onnxscript.rewriter").RewritePass
    original = passes.PassBase.__call__

    @functools.wraps(original)
    def call(self: Any, given: Any) -> Any:
        if isinstance(self, frames) or type(self).__name__ in _BOOKKEEPING:
            return original(self, given)
        model = given if isinstance(given, model_type) else getattr(given, "model", None)
        before = encode_model(recorder, model)
        result = original(self, given)
        if before is not None:
            recorder.pair(before, type(self).__name__, changed=bool(result.modified))
        return result

    passes.PassBase.__call__ = call


def encode_model(recorder: PairRecorder, model: Any) -> bytes | None:
    """Return `model` as bytes; None, after recording a reason, when it cannot be serialised."""
    try:
        data: bytes = import_module("onnx_ir").to_proto(model).SerializeToString()
    except Exception as error:  # noqa: BLE001 - an error of the hook must not change the test
        recorder.left(f"a model cannot be written ({line_of(error)})")
        return None
    return data


def rule_name(rule: Any) -> str:
    """Return a rule's name; for one without a name, the operators that it matches and those that it inserts."""
    if rule.name:
        return str(rule.name)
    nodes = getattr(getattr(rule, "_target_pattern", None), "_nodes", ())
    operators = "+".join(str(getattr(node, "op_type", "?")) for node in nodes)
    function = getattr(getattr(rule, "_replacement_pattern", None), "_function", None)
    return f"{operators}->{getattr(function, '__name__', '?')}"


if __name__ == "__main__":
    sys.exit(main(install))
