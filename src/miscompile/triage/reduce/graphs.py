"""ONNX programs as drafts for reduction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.ports import Runner
from miscompile.core.verdict import Evidence
from miscompile.graph.check import check
from miscompile.graph.model import TensorType, ValueInfo
from miscompile.oracles.disruptive import is_invalid
from miscompile.triage.reduce.capture import Captured, ReferenceCapture
from miscompile.triage.reduce.catalogue import standard
from miscompile.triage.reduce.cost import cost_of
from miscompile.triage.reduce.defined import Guard
from miscompile.triage.reduce.draft import Draft, Reprogram, inexact, put_together, take_apart, tidy
from miscompile.triage.reduce.reduction import Cost, Reduction


@dataclass(slots=True)
class GraphDrafts:
    """The draft kind of ONNX models.

    `runner` runs the reference build, to capture the inner values of a graph; `voter`, a runner of onnx's reference
    implementation, captures them for a graph that no build runs, so that undefined behaviour is found there too.
    `reprogram` makes the program of a model.
    """

    runner: Runner
    reprogram: Reprogram = inexact
    voter: Runner | None = None
    _capture: ReferenceCapture | None = field(default=None, init=False)

    def take_apart(self, case: Case, evidence: Evidence) -> Draft:
        """Return the draft of `case`.

        Raises ModelError for a program that is invalid on purpose, because `put_together` would refuse every candidate
        that keeps the broken rule; `InvalidDrafts` is the kind of such programs.
        """
        if is_invalid(case):
            raise ModelError("the program is invalid on purpose")
        sound = evidence.reference or evidence.faulty
        self._capture = ReferenceCapture(self.runner, sound.target, sound.build, self.voter)
        return take_apart(case)

    def tidy(self, draft: Draft) -> Draft:
        """Return the draft without the parts that its outputs do not need.

        Outputs whose rank inference does not find get the sizes that they have, because onnx's checker demands a rank.
        """
        small = tidy(draft)
        if all(_ranked(info) for info in small.graph.outputs):
            return small
        captured = self.capture(small)
        return small.with_graph(outputs=tuple(_with_sizes(info, captured) for info in small.graph.outputs))

    def cost(self, draft: Draft) -> Cost:
        """Return the cost of a draft; see `cost_of`."""
        return cost_of(draft)

    def digest(self, draft: Draft) -> str:
        """Return the digest of model and feeds."""
        return draft.digest

    def put_together(self, draft: Draft, recipe: Mapping[str, Any]) -> Case:
        """Return the case of a draft. Raises MiscompileError for a model that breaks onnx's rules."""
        check(draft.model)
        return put_together(draft, self.reprogram, recipe)

    def defined(self, draft: Draft) -> bool:
        """Tell whether no node has undefined behaviour on the draft's feeds, as far as values are known."""
        return Guard(self.capture)(draft)

    def reductions(self) -> Sequence[Reduction[Draft]]:
        """Return the standard reductions of graphs."""
        return standard(self.capture)

    @property
    def capture(self) -> ReferenceCapture:
        """Return the inner values of a draft."""
        assert self._capture is not None, "a case is taken apart first"
        return self._capture


def _ranked(info: ValueInfo) -> bool:
    return not isinstance(info.type, TensorType) or info.type.shape is not None


def _with_sizes(info: ValueInfo, captured: Captured) -> ValueInfo:
    """Give an output without a rank the sizes of its values; it stays as it is where they are unknown, or differ."""
    shapes = {known[info.name].shape if info.name in known else None for known in captured}
    if _ranked(info) or None in shapes or len(shapes) != 1:
        return info
    assert isinstance(info.type, TensorType)
    return ValueInfo(info.name, TensorType(info.type.dtype, shapes.pop()))
