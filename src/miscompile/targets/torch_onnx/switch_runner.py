"""Switches for the exporters' rewrite rules and passes, which have no settings; standalone scripts contain those that
they need.

Each switch wraps a function of the exporter for the rest of the process. `SWITCHED_OFF` holds the names that are
off, and `SEEN` those that have changed the current program.
"""

import functools
from collections.abc import Callable, Collection
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import torch

from miscompile.targets.torch_onnx.names import NO_OP, PASSES, TRACED

SWITCHED_OFF: set[str] = set()
"""The names that are off in the current build."""

SEEN: dict[str, None] = {}
"""The names that have changed the program of the current build, in order."""


def switch_off(disabled: Collection[str]) -> None:
    """Switch off exactly `disabled` in all later exports, and forget what has been seen."""
    SWITCHED_OFF.clear()
    SWITCHED_OFF.update(disabled)
    SEEN.clear()


def replace_function(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:  # noqa: ANN401 - a class or module
    """Replace function or method `name` of `owner` by `wrapper`, whose first argument is the original."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **words: Any) -> Any:  # noqa: ANN401
        return wrapper(original, *args, **words)

    setattr(owner, name, wrapped)


def switch_rules() -> None:
    """Make onnxscript's rewrite rules switchable, by their names or by the variables that hold them."""
    rules = import_module("onnxscript.rewriter.rules.common")
    modules = [import_module(f"{rules.__name__}.{one.name}") for one in iter_modules(rules.__path__)]
    names = {id(value): name for module in modules for name, value in vars(module).items()}

    def rewrite(original: Any, self: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        name = self.name or names.get(id(self), NO_OP)
        if name in SWITCHED_OFF:
            return None
        found = original(self, *args, **words)
        if found is not None:
            SEEN[name] = None
        return found

    replace_function(import_module("onnxscript.rewriter").RewriteRule, "try_rewrite", rewrite)


def switch_passes() -> None:
    """Make the passes of onnx_ir and onnxscript switchable that optimisation runs."""
    common, folding = import_module("onnx_ir.passes.common"), import_module("onnxscript.optimizer._constant_folding")
    result = import_module("onnx_ir.passes").PassResult

    def call(name: str, original: Any, self: Any, model: Any) -> Any:  # noqa: ANN401
        if name in SWITCHED_OFF:
            return result(model, False)
        found = original(self, model)
        if found.modified:
            SEEN[name] = None
        return found

    for name in PASSES:
        owner = getattr(folding, name, None) or getattr(common, name, None)
        if owner is not None:
            replace_function(owner, "call", functools.partial(call, name))


def switch_traced() -> None:
    """Make the passes of the exporter of TorchScript switchable: those on a graph, and those on its parameters too."""

    def call(name: str, original: Any, *args: Any) -> Any:  # noqa: ANN401
        if name in SWITCHED_OFF:
            return next((one for one in args[1:2] if isinstance(one, dict)), None)
        before = str(args[0])
        found = original(*args)
        if str(args[0]) != before:
            SEEN[name] = None
        return found

    for name in TRACED:
        if hasattr(torch._C, name):
            replace_function(torch._C, name, functools.partial(call, name))
