"""The assertion that a model computes the same compiled and uncompiled, for people's own tests.

An ONNX model runs in worker processes, as in `miscompile check`. A module of torch or a function of JAX exists only in
the process of the test, so it is compiled there, and a crash of the compiler ends that process.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import onnx

from miscompile.base.errors import NothingTested, UsageError
from miscompile.base.rng import stream
from miscompile.core.examination import Examination, examine
from miscompile.core.pool import Pool
from miscompile.core.verdict import Inconclusive, Violated
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_oracle, make_pool, make_producer, oracle_context
from miscompile.ops.support import Support
from miscompile.targets.registry import DEFAULT_TARGET
from miscompile.testing import jax_function, torch_module
from miscompile.triage.attribution import Confirmer

CheckedModel: TypeAlias = Any
"""A path, the bytes or the `onnx.ModelProto` of an ONNX model, a `torch.nn.Module`, or a function of JAX."""

BUDGET = 20
"""Tests by default; each draws new inputs."""


def assert_compiles_alike(
    model: CheckedModel,
    targets: str | Sequence[str] = (),
    budget: int = BUDGET,
    *,
    inputs: Sequence[Any] = (),
    seed: int = 0,
    limit_seconds: float = 30.0,
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
        _assert_onnx(model, chosen or (DEFAULT_TARGET,), budget, seed, limit_seconds)
    elif _is_torch(model):
        chosen = chosen or (torch_module.TARGET,)
        if torch_module.TARGET in chosen:
            torch_module.assert_alike(model, inputs, budget, seed)
        others = tuple(target for target in chosen if target != torch_module.TARGET)
        if others:
            _assert_onnx(torch_module.to_onnx(model, inputs), others, budget, seed, limit_seconds)
    elif callable(model) and "jax" in sys.modules:
        if chosen not in ((), (jax_function.TARGET,)):
            raise UsageError(f"a function of JAX has the target '{jax_function.TARGET}'; export it to ONNX for others")
        jax_function.assert_alike(model, inputs, budget, seed)
    else:
        raise UsageError(f"{type(model).__name__} is no ONNX model, torch module or function of JAX")


def _is_torch(model: CheckedModel) -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _assert_onnx(
    model: "str | os.PathLike[str] | bytes | onnx.ModelProto", targets: tuple[str, ...], budget: int, seed: int,
    limit_seconds: float,
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="miscompile-") as folder:
        path = _path_of(model, Path(folder))
        plan = Plan(
            targets[0], targets[1:], seconds=None, tests=budget, seed=seed, model=str(path), limit_seconds=limit_seconds
        )
        producer = make_producer(plan, *[Support(open=True)] * len(targets))
        reasons: list[str] = []
        with make_pool(plan) as pool:
            for index in range(budget):
                rng = stream(seed, "alike", index)
                case = producer.propose(rng)
                seen = examine(case, make_oracle(plan, {}), pool, rng)
                if isinstance(seen.verdict, Violated):
                    _fail_if_it_repeats(plan, seen, pool, index)
                elif isinstance(seen.verdict, Inconclusive):
                    reasons.append(seen.verdict.reason)
    if len(reasons) == budget:
        told = ", ".join(dict.fromkeys(reasons))
        raise NothingTested(f"{' and '.join(targets)}: none of {budget} tests of the model could be judged: {told}")


def _fail_if_it_repeats(plan: Plan, seen: Examination, pool: Pool, index: int) -> None:
    """Raise AssertionError with the guilty passes if a violation repeats in fresh processes."""
    assert isinstance(seen.verdict, Violated)
    evidence = seen.verdict.evidence
    confirmed = Confirmer(pool, oracle_context(plan), plan.seed).investigate(seen.runs[0].case, evidence, seen.faulty)
    if confirmed is None:
        return
    advice = f"`miscompile check MODEL --target {' --target '.join(plan.targets)}` reduces it and writes a script"
    raise AssertionError(f"test {index}: {evidence.message}\n{confirmed.signature}\n{advice}")


def _path_of(model: "str | os.PathLike[str] | bytes | onnx.ModelProto", folder: Path) -> Path:
    if isinstance(model, str | os.PathLike):
        return Path(model)
    path = folder / "model.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return path
