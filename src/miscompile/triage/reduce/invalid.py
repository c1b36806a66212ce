"""ONNX programs that are invalid on purpose, as drafts for reduction.

Every draft must be invalid by the rule that the finding names: the judges give the same answers about its broken node
as about that of the original, and the rest of its graph is valid. So a program that has become valid is never run, and
its acceptance is never reported as the finding.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.ports import Runner
from miscompile.core.verdict import Evidence
from miscompile.graph.model import TensorType, ValueInfo
from miscompile.oracles.disruptive import is_invalid
from miscompile.producers.disruptive.checker import ResultTypes
from miscompile.producers.disruptive.proof import Check, Prover
from miscompile.producers.disruptive.violation import Standing, violation_of
from miscompile.triage.reduce.broken import Examiner, hidden, hidden_again
from miscompile.triage.reduce.capture import ReferenceCapture
from miscompile.triage.reduce.catalogue import standard
from miscompile.triage.reduce.cost import cost_of
from miscompile.triage.reduce.draft import Draft, inexact, needed, put_together, take_apart
from miscompile.triage.reduce.reduction import Cost, Reduction

_BEFORE_SIZES = 7
"""Costs that weigh more than an input with hidden sizes: nodes, outputs, inputs and the like."""


@dataclass(slots=True)
class InvalidDrafts:
    """The draft kind of ONNX models that are invalid on purpose.

    `check` and `infer` are onnx's checker and inference, in a process of their own (`ChildChecker`). `runner` and
    `voter` give the values before the broken node, as for `GraphDrafts`.
    """

    runner: Runner
    check: Check
    infer: Callable[[bytes], ResultTypes]
    voter: Runner | None = None
    _examiner: Examiner | None = field(default=None, init=False)
    _standing: Standing | None = field(default=None, init=False)
    _proven: str = field(default="", init=False)

    def take_apart(self, case: Case, evidence: Evidence) -> Draft:
        """Return the draft of `case`.

        Raises ModelError for a program that is not invalid on purpose, and for one whose recorded rule the judges no
        longer find broken.
        """
        if not is_invalid(case):
            raise ModelError("the program is not invalid on purpose")
        violation = violation_of(case.recipe)
        captured = ReferenceCapture(self.runner, evidence.faulty.target, evidence.faulty.build, self.voter)
        examiner = Examiner(Prover(self.check), self.infer, captured, violation)
        draft = take_apart(case)
        found = examiner.examine(draft)
        self._examiner, self._standing, self._proven = examiner, found.standing, str(case.recipe.get("proof", ""))
        return draft

    def tidy(self, draft: Draft) -> Draft:
        """Return the draft without the parts that its outputs do not need. Raises ModelError for one that is valid."""
        return self.examiner.retyped(needed(draft))

    def cost(self, draft: Draft) -> Cost:
        """Return the cost of a draft: that of `cost_of`, and inputs with hidden sizes before the sizes themselves."""
        costs = cost_of(draft)
        return (*costs[:_BEFORE_SIZES], len(hidden(draft)), *costs[_BEFORE_SIZES:])

    def digest(self, draft: Draft) -> str:
        """Return the digest of model and feeds."""
        return draft.digest

    def put_together(self, draft: Draft, recipe: Mapping[str, Any]) -> Case:
        """Return the case of a draft; its recipe describes the broken rule as it stands in this draft.

        Raises ModelError for a draft that is valid, that is invalid by another rule, or that onnx's checker accepts
        where it refused the original.
        """
        assert self._standing is not None, "a case is taken apart first"
        found = self.examiner.examine(draft, repair=bool(self._standing.repair))
        if not found.standing.same_rule(self._standing):
            raise ModelError("another rule is broken, or one more")
        if self._proven == "checker" and found.proof.kind != "checker":
            raise ModelError("onnx's checker accepts the program")
        broken = {**recipe["broken"], "detail": found.detail, "refusal": found.proof.message}
        return put_together(draft, inexact, {**recipe, "broken": broken, "proof": found.proof.kind})

    def defined(self, draft: Draft) -> bool:
        """Return True, because `put_together` refuses drafts with undefined behaviour outside the broken node."""
        del draft
        return True

    def reductions(self) -> Sequence[Reduction[Draft]]:
        """Return the standard reductions of graphs, which leave hidden sizes hidden, and those for such programs."""
        usual = (WithHiddenSizes(one) for one in standard(self.examiner, self.examiner.types))
        return (ShownSizes(), *usual, ShorterLists())

    @property
    def examiner(self) -> Examiner:
        """Return the judge of the drafts."""
        assert self._examiner is not None, "a case is taken apart first"
        return self._examiner


@dataclass(frozen=True, slots=True)
class ShownSizes:
    """Declares the sizes of inputs that the program hides, because a finding may not need them hidden."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield the draft with all sizes declared, then with those of one input."""
        names = list(hidden(draft))
        for chosen in ([names] if len(names) > 1 else []) + [[name] for name in names]:
            inputs = tuple(_shown(info, draft) if info.name in chosen else info for info in draft.graph.inputs)
            yield draft.with_graph(inputs=inputs)


@dataclass(frozen=True, slots=True)
class ShorterLists:
    """Removes single entries of attributes that are lists of numbers, because the lists may be too long."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with one entry less in one attribute."""
        for at, node in enumerate(draft.graph.nodes):
            for name, given in node.attributes.items():
                for place in range(len(given.value) if given.kind in ("ints", "floats") else 0):
                    shorter = replace(given, value=(*given.value[:place], *given.value[place + 1 :]))
                    changed = replace(node, attributes={**node.attributes, name: shorter})
                    yield draft.with_nodes((*draft.graph.nodes[:at], changed, *draft.graph.nodes[at + 1 :]))


@dataclass(frozen=True, slots=True)
class WithHiddenSizes:
    """Proposes the candidates of another reduction, and hides the sizes of the inputs that had hidden sizes before."""

    inner: Reduction[Draft]

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield the candidates of the inner reduction."""
        names = hidden(draft)
        for candidate in self.inner.edits(draft):
            yield hidden_again(candidate, names) if names else candidate


def _shown(info: ValueInfo, draft: Draft) -> ValueInfo:
    assert isinstance(info.type, TensorType)
    value = draft.feeds[0][info.name]
    return replace(info, type=TensorType(value.dtype, value.shape))
