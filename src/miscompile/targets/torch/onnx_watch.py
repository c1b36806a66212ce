"""Records of the functions by which torch's exporters to ONNX convert operators, for the front ends that use them."""

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from miscompile.targets.torch.conversions import Conversions, name_of


def watch_dispatch(conversions: Conversions) -> None:
    """Record the functions to which the registry of `torch.export`'s operators dispatches."""
    dispatching: Any = import_module("torch.onnx._internal.exporter._dispatching")
    original: Callable[..., Any] = dispatching.dispatch

    @functools.wraps(original)
    def dispatch(node: Any, registry: Any) -> Any:  # noqa: ANN401 - a node of torch.fx
        function, message = original(node, registry)
        if function is not None:
            conversions.note(name_of(function, str(node.target)))
        return function, message

    dispatching.dispatch = dispatch


def watch_symbolics(conversions: Conversions) -> None:
    """Record the symbolic functions that convert TorchScript's operators."""
    group: Any = import_module("torch.onnx._internal.torchscript_exporter.registration")._SymbolicFunctionGroup
    original: Callable[..., Any] = group.get

    @functools.wraps(original)
    def get(owner: Any, opset: int) -> Any:  # noqa: ANN401 - the exporter's class
        function = original(owner, opset)
        if function is not None and sys._getframe(1).f_code.co_name == "_run_symbolic_function":
            conversions.note(name_of(function, owner._name))
        return function

    group.get = get
