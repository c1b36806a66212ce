"""The support table: every node case of onnx's own backend tests on a target, case by case."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from miscompile.base.dtypes import is_float
from miscompile.base.errors import UsageError
from miscompile.core.case import Feed
from miscompile.core.outcome import (
    Crashed,
    Defect,
    Outcome,
    OutOfMemory,
    Raised,
    Rejected,
    TimedOut,
    Unsupported,
    Values,
)
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.environments.resolve import versions_of
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.execution.runners import ParallelRunner
from miscompile.producers.slices.node_cases import NodeCase, node_cases
from miscompile.producers.slices.table import SupportTable
from miscompile.targets.registry import parse_target

SurveyStatus = Literal["pass", "wrong", "unsupported", "rejected", "error", "crash", "hang", "memory", "skip"]
"""In this order: correct results; wrong results; the target lacks a feature; it refuses the model; it raises another
error; its process dies; it times out; it exhausts the memory; the case has values that are no dense tensors."""

_MESSAGE = 300
_BATCH = 64


@dataclass(frozen=True, slots=True)
class SurveyRow:
    """The result of one node case."""

    name: str
    op: str
    version: int
    dtype: str
    status: SurveyStatus
    message: str = ""


def survey(
    target: str, cases: Sequence[NodeCase], runner: Runner, level: str, watch: Callable[[int], None] | None = None
) -> list[SurveyRow]:
    """Run every case on `target` at `level`; `watch` gets the number of finished cases."""
    rows: list[SurveyRow] = []
    for start in range(0, len(cases), _BATCH):
        batch = cases[start : start + _BATCH]
        runs = [Run(item.case, target, Build(level), "probe") for item in batch if item.case is not None]
        outcomes = iter(runner.run(runs))
        rows += [_row(item, None if item.case is None else next(outcomes)) for item in batch]
        if watch:
            watch(len(rows))
    return rows


def _row(item: NodeCase, outcome: Outcome | None) -> SurveyRow:
    status, message = _judge(item, outcome)
    return SurveyRow(item.name, item.op, item.version, item.dtype, status, " ".join(message.split())[:_MESSAGE])


def _judge(item: NodeCase, outcome: Outcome | None) -> tuple[SurveyStatus, str]:
    match outcome:
        case None:
            return "skip", "not made of dense tensors"
        case Values(results):
            problem = next(filter(None, map(_problem, [item] * len(results), item.expected, results)), "")
            return ("wrong", problem) if problem else ("pass", "")
        case Unsupported(stage, message):
            return "unsupported", f"{stage}: {message}"
        case Rejected(stage, message):
            return "rejected", f"{stage}: {message}"
        case Raised(stage, kind, message):
            return "error", f"{stage}: {kind}: {message}"
        case Defect(stage, kind, message):
            return "error", f"{stage}: a defect of the adapter: {kind}: {message}"
        case Crashed(stage, signal):
            return "crash", f"{stage}: signal {signal}"
        case TimedOut(stage, seconds):
            return "hang", f"{stage}: no end within {seconds:g} s"
        case OutOfMemory(stage, message):
            return "memory", f"{stage}: {message}"


def _problem(item: NodeCase, expected: Feed, found: Sequence[Tensor | None]) -> str:
    """Return the first error in the results of one feed; an empty text if there is none."""
    for index, (want, got) in enumerate(zip(expected, found, strict=False)):
        if got is None:
            return f"output {index} is missing"
        if (want.dtype, want.shape) != (got.dtype, got.shape):
            return f"output {index} is {got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
        if not item.random and not _close(item, want, got):
            return f"output {index} has other elements than expected"
    return "" if len(expected) == len(found) else f"{len(found)} outputs instead of {len(expected)}"


def _close(item: NodeCase, want: Tensor, got: Tensor) -> bool:
    if not is_float(want.dtype) or not want.array.dtype.isbuiltin:
        return bool(np.array_equal(want.array, got.array))
    if want.dtype not in ("bfloat16", "float16", "float32", "float64"):
        return want.same(got)
    rtol, atol = max(item.rtol, _LOOSER.get(want.dtype, 0.0)), max(item.atol, _LOOSER.get(want.dtype, 0.0))
    with np.errstate(all="ignore"):
        return bool(np.allclose(got.numbers(), want.numbers(), rtol=rtol, atol=atol, equal_nan=True))


_LOOSER = {"float16": 2e-3, "bfloat16": 2e-2}
"""Least tolerances of 16-bit floats, because onnx's defaults are made for float32."""


def table_of(
    target: str, level: str, ops: Sequence[str], workers: int, seconds: float, on_progress: Callable[[int, int], None]
) -> SupportTable:
    """Run onnx's node cases (of `ops`, if there are any) on `target` in `workers` workers, `seconds` at most for each.

    Raises UsageError when the target cannot be loaded, or no case is of `ops`.
    """
    found = versions_of(target)
    cases = [case for case in node_cases(parse_target(target).about.max_ir_version) if not ops or case.op in ops]
    if not cases:
        raise UsageError(f"onnx has no node cases of {', '.join(ops)}")
    with LocalPool(target, workers, Limits(seconds=seconds)) as pool:
        rows = survey(target, cases, ParallelRunner(pool), level, lambda done: on_progress(done, len(cases)))
    return SupportTable(target, found, level, tuple(map(asdict, rows)))
