"""Operators of a published fuzzer, each said as an ONNX operator or a short chain of them.

A preset is exact only if its operators are those of the paper: where ONNX lacks one, a chain stands for it that counts
as one operator, and whose inner values nothing else uses.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attribute
from miscompile.graph.model import Attribute
from miscompile.ops.facts import Span
from miscompile.ops.registry import specs
from miscompile.ops.shapes import broadcasts
from miscompile.ops.spec import Call, Operand, Site
from miscompile.patterns.language import Argument, MotifCall, Number, Ref, parse_motifs
from miscompile.producers.scope import Scope
from miscompile.producers.sites import ScopeSite

Spans = tuple[Span | None, ...]
"""For each operand the range that its elements must lie in; None for any."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """How an operator is said for some dtypes.

    The operands are those that the sampler of the ONNX operator `like` picks, which knows its domain; or, without
    `like`, values within `spans`.
    """

    dtypes: tuple[str, ...]
    steps: tuple[MotifCall, ...]
    like: str = ""
    spans: Callable[[Site], Spans] | None = None

    @property
    def operators(self) -> tuple[str, ...]:
        """The ONNX operators in order."""
        return tuple(step.op for step in self.steps)


@dataclass(frozen=True, slots=True)
class PaperOperator:
    """One of the 58: its name in the paper, number of operands, decompositions in ONNX, and a note for readers."""

    name: str
    arity: Literal[1, 2]
    decompositions: tuple[Decomposition, ...]
    note: str = ""

    def decomposition(self, dtype: str) -> Decomposition | None:
        """Return the decomposition for operands of `dtype`, None when ONNX has none."""
        return next((decomposition for decomposition in self.decompositions if dtype in decomposition.dtypes), None)


def as_onnx(
    dtypes: tuple[str, ...], lines: str, like: str = "", spans: Callable[[Site], Spans] | None = None
) -> Decomposition:
    """Return the decomposition that `lines` of the motif language say over `a` and `b`. Raises SpecError."""
    (motif,) = parse_motifs(f"[form]\na = value()\nb = value()\n{lines}", "an operator's decomposition")
    return Decomposition(
        dtypes, tuple([statement for statement in motif.statements if isinstance(statement, MotifCall)]), like, spans
    )


def operands_of(site: ScopeSite, operator: PaperOperator, decomposition: Decomposition) -> tuple[Operand, ...]:
    """Return the operands of a decomposition, in its domain. Raises RejectedDraft."""
    if decomposition.spans is not None:
        left, *right = decomposition.spans(site)
        first = site.operand(within=left)
        return (first, *(site.partner(first.shape, within=span) for span in right))
    try:
        call = specs()[decomposition.like].sample(site)
    except (ArithmeticError, ValueError) as error:  # bounds worked out by a sampler may leave a function's domain
        raise RejectedDraft(f"{operator.name}: {error}") from None
    operands = tuple(operand for operand in call.inputs[: operator.arity] if operand is not None)
    if not broadcasts(*(operand.shape for operand in operands)):
        raise RejectedDraft(f"{operator.name}: the operands do not broadcast")
    return operands


def encode(scope: Scope, decomposition: Decomposition, operands: Sequence[Operand]) -> tuple[Operand, ...]:
    """Add the steps of `decomposition` over `operands` and return their results; the last one is the operator's.

    Raises RejectedDraft when a step cannot be added; earlier ones stay, so roll back to a mark.
    """
    bound = dict(zip("ab", operands, strict=False))
    results: list[Operand] = []
    for step in decomposition.steps:
        beside = next(bound[item.name] for item in step.arguments if isinstance(item, Ref))
        arguments = tuple([_argument(scope, item, bound, beside.dtype) for item in step.arguments])
        settings = {name: _setting(name, value, operands[0].dtype) for name, value in step.attributes}
        (result,) = scope.apply(Call(step.op, arguments, settings))
        bound[step.names[0]] = result
        results.append(result)
    return tuple(results)


def _argument(scope: Scope, argument: Argument, bound: dict[str, Operand], dtype: str) -> Operand:
    if isinstance(argument, Ref):
        return bound[argument.name]
    assert isinstance(argument, Number), "decompositions have names and numbers only"
    return scope.new_constant(_scalar(argument.value, dtype))


@cache
def _scalar(value: float, dtype: str) -> Tensor:
    return tensor(np.asarray(value), dtype)


def _setting(name: str, value: object, dtype: str) -> Attribute:
    if name == "to":
        return attribute(DTYPES[dtype if value == "T" else str(value)].code)
    assert isinstance(value, int | str), "decompositions have numbers and words as attributes"
    return attribute(value)


def hide(scope: Scope, operand: Operand) -> None:
    """Take a value out of the pool, so that no operator selects it: the paper's graph does not have it.

    A rollback to a mark made before the value is no longer possible.
    """
    pool = scope.pool[operand.dtype]
    place = max(place for place, known in enumerate(pool) if known is operand)
    del pool[place]
