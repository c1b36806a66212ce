"""The assertion that a model computes the same compiled and uncompiled, for people's own tests.

An ONNX model runs in worker processes, as in `miscompile check`. A module of torch or a function of JAX exists only in
the process of the test, so it is compiled there, and a crash of the compiler ends that process.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import onnx

from miscompile.api.models import OnnxModel
from miscompile.api.sighting import LIMIT_SECONDS, TESTS, ModelTests, sight
from miscompile.base.errors import UsageError
from miscompile.targets.registry import DEFAULT_TARGET
from miscompile.testing import jax_function, torch_module

CheckedModel: TypeAlias = Any
"""A path, the bytes or the `onnx.ModelProto` of an ONNX model, a `torch.nn.Module`, or a function of JAX."""


def assert_compiles_alike(
    model: CheckedModel,
    targets: str | Sequence[str] = (),
    budget: int = TESTS,
    *,
    inputs: Sequence[Any] = (),
    seed: int = 0,
    limit_seconds: float = LIMIT_SECONDS,
) -> None:
    """Raise AssertionError when `model` computes something else compiled than uncompiled, on one of `budget` inputs.

    An ONNX model is held against itself without optimisations on one of `targets`, or several compilers are held
    against each other; the default is ONNX Runtime. Inputs are drawn, symbolic sizes included. A torch module needs
    example `inputs`, positional tensors whose shapes, types and ranges the drawn ones have; its default target is
    `inductor`, which is `torch.compile`, and it is exported to ONNX for all others (that needs onnxscript). A function
    of JAX needs example arrays as `inputs`, and its target is `xla`, which is `jax.jit`.

    A difference must be larger than rounding explains, and must repeat. The same seed makes the same tests. A single
    run of an ONNX model that takes more than `limit_seconds` is a hang. Raises UsageError for a model that cannot be
    fed, and NothingTested when the compiler takes it in no test: a test that tests nothing must not pass.
    """
    chosen = (targets,) if isinstance(targets, str) else tuple(targets)
    if budget < 1:
        raise UsageError("budget: a test needs at least one input")
    if isinstance(model, str | os.PathLike | bytes | onnx.ModelProto):
        _assert_onnx(model, ModelTests(chosen or (DEFAULT_TARGET,), budget, seed, limit_seconds))
    elif _is_torch(model):
        chosen = chosen or (torch_module.TARGET,)
        if torch_module.TARGET in chosen:
            torch_module.assert_alike(model, inputs, budget, seed)
        others = tuple(target for target in chosen if target != torch_module.TARGET)
        if others:
            _assert_onnx(torch_module.to_onnx(model, inputs), ModelTests(others, budget, seed, limit_seconds))
    elif callable(model) and "jax" in sys.modules:
        if chosen not in ((), (jax_function.TARGET,)):
            raise UsageError(f"a function of JAX has the target '{jax_function.TARGET}'; export it to ONNX for others")
        jax_function.assert_alike(model, inputs, budget, seed)
    else:
        raise UsageError(f"{type(model).__name__} is no ONNX model, torch module or function of JAX")


def _is_torch(model: CheckedModel) -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _assert_onnx(model: OnnxModel, how: ModelTests) -> None:
    seen = sight(model, how)
    if seen is None:
        return
    advice = f"`miscompile check MODEL --target {' --target '.join(how.targets)}` reduces it and writes a script"
    raise AssertionError(f"test {seen.test}: {seen.found.evidence.message}\n{seen.found.signature}\n{advice}")
