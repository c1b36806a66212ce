"""A call of one operator in a mutable form: operands as tensors, so that every part of it can be made invalid.

A valid single-operator program is decomposed into a draft; violations return changed drafts; a draft becomes a model in
one of several presentations. Some presentations hide shapes, so that a compiler can only detect the violation at run
time.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Dim
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.graph.model import Attribute, Graph, Model, Node, TensorType, ValueInfo
from miscompile.ops.facts import measure
from miscompile.ops.spec import Call, Operand, Shape
from miscompile.ops.values import draw
from miscompile.producers.finish import ir_version_of
from miscompile.producers.sweep import Single

DraftRole = Literal["constant", "fed", "structural"]
"""An initialiser; a graph input; a graph input whose elements determine shapes or positions."""

Presentation = Literal["plain", "sizes", "ranks", "constants"]
"""How a draft is written as a model.

plain: as drawn. sizes: inputs declare their rank alone. ranks: not even the rank. constants: every operand is an
initialiser, so that onnx's inference knows all elements.
"""


class DraftOperand(NamedTuple):
    """An operand with its elements. `known`: an operator's rule may ask for the elements, as for axes and shapes."""

    value: Tensor
    role: DraftRole
    known: bool

    @property
    def dtype(self) -> str:
        """Element type."""
        return self.value.dtype

    @property
    def shape(self) -> Shape:
        """Sizes."""
        return self.value.shape

    def cast(self, dtype: str) -> "DraftOperand":
        """Return the operand with its elements converted to `dtype` (strings: their decimal form)."""
        return self._replace(value=_cast(self.value, dtype))

    def sized(self, shape: Shape) -> "DraftOperand":
        """Return the operand with its elements repeated, or cut off, so that it has `shape`."""
        return self._replace(value=Tensor(self.dtype, np.resize(self.value.array, shape)))

    def holding(self, elements: Array) -> "DraftOperand":
        """Return the operand with other elements, of the same dtype."""
        return self._replace(value=Tensor(self.dtype, np.asarray(elements, self.value.array.dtype)))


@dataclass(frozen=True, slots=True)
class InvalidDraft:
    """A call under `opset`: operands (None: left out), attributes, and the declared types of its outputs."""

    op: str
    opset: int
    parts: tuple[DraftOperand | None, ...]
    attributes: Mapping[str, Attribute]
    outputs: tuple[TensorType, ...]
    domain: str = ""

    def model(self, presentation: Presentation = "plain", *, bare: bool = False) -> Model:
        """Return the draft as a model whose values are `x0`, `x1` and so on (operands), `y0` and so on (outputs).

        `bare`: without graph outputs, so that an error of onnx's checker concerns the call and not a declared type.
        """
        constant = {
            f"x{place}": part.value
            for place, part in enumerate(self.parts)
            if part is not None and (part.role == "constant" or presentation == "constants")
        }
        infos = tuple(
            ValueInfo(f"x{place}", TensorType(part.dtype, _declared(part.shape, presentation)))
            for place, part in self.fed()
            if f"x{place}" not in constant
        )
        names = tuple(f"x{place}" if part is not None else "" for place, part in enumerate(self.parts))
        results = tuple(ValueInfo(f"y{place}", kind) for place, kind in enumerate(self.outputs))
        node = Node(self.op, names, tuple(info.name for info in results), self.attributes, self.domain)
        graph = Graph("main", infos, () if bare else results, (node,), constant)
        return Model(graph, {"": self.opset}, (), ir_version_of(self.opset))

    def fed(self) -> list[tuple[int, DraftOperand]]:
        """Return the operands that are graph inputs, with their places."""
        return [(place, part) for place, part in enumerate(self.parts) if part is not None and part.role != "constant"]

    def call(self, *, before_run: bool = False) -> Call:
        """Return the call for the operators' rules: with measured facts, and the elements of structural operands.

        `before_run`: with the knowledge before the run, that is, without the elements of graph inputs.
        """
        operands = [
            part
            and Operand(
                f"x{place}",
                part.dtype,
                part.shape,
                measure(part.value),
                part.value.array if part.known and not (before_run and part.role != "constant") else None,
            )
            for place, part in enumerate(self.parts)
        ]
        return Call(self.op, tuple(operands), self.attributes, len(self.outputs), self.domain)


def take_apart(single: Single, rng: random.Random) -> InvalidDraft:
    """Return a drawn program of one operator as a draft; elements of inputs are drawn from their ranges."""
    call, scope = single.call, single.scope
    parts: list[DraftOperand | None] = []
    for operand in call.inputs:
        if operand is None:
            parts.append(None)
        elif operand.name in scope.inputs:
            drawn = draw(rng, operand.dtype, operand.shape, scope.inputs[operand.name])
            parts.append(DraftOperand(Tensor(operand.dtype, drawn), "fed", known=False))
        elif operand.name in scope.pinned:
            parts.append(DraftOperand(scope.pinned[operand.name], "structural", known=True))
        else:
            assert operand.value is not None, f"{operand.name} is neither an input nor a constant"
            known = operand.name not in scope.drawn
            parts.append(DraftOperand(Tensor(operand.dtype, operand.value), "constant", known))
    return InvalidDraft(call.op, scope.opset, tuple(parts), call.attributes, _unsized(single.types), call.domain)


def _unsized(types: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Declare only dtype and rank of the outputs, so that the declaration stays right when the call is changed."""
    return tuple(TensorType(kind.dtype, (None,) * len(kind.shape or ())) for kind in types)


def _declared(shape: Shape, presentation: Presentation) -> tuple[Dim, ...] | None:
    if presentation == "ranks":
        return None
    return (None,) * len(shape) if presentation == "sizes" else shape


def _cast(value: Tensor, dtype: str) -> Tensor:
    numbers = value.numbers()
    if dtype == "string":
        texts = np.array([str(number) for number in numbers.ravel().tolist()], object)
        return Tensor(dtype, texts.reshape(value.shape))
    if DTYPES[dtype].kind == "bool":
        return Tensor(dtype, np.asarray(numbers != 0))
    if DTYPES[dtype].kind != "complex":
        numbers = np.real(numbers)
    with np.errstate(invalid="ignore", over="ignore"):
        return tensor(np.asarray(numbers), dtype)
