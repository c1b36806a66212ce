"""Proof that a changed call is invalid: onnx's checker or a rule of its operator rejects it with all shapes visible.

A program without such a proof is discarded, because it may be valid.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from miscompile.core.tensor import Tensor
from miscompile.graph.emit import emit
from miscompile.ops.registry import specs, well_formed
from miscompile.ops.spec import defined_on_all
from miscompile.producers.disruptive.draft import InvalidDraft, Presentation

Check = Callable[[bytes], str | None]
"""Returns the error in a model, an empty text if it is valid, None if the check itself fails."""

ProofKind = Literal["checker", "rule", "runtime"]
"""checker: onnx's full check rejects the model. rule: only the operator's page does. runtime: the error depends on
sizes or elements that are only known when the program runs.
"""

Page = Literal["none", "form", "elements", "domain"]
"""Which rules of the operator's page may serve as proof: none; on shapes and attributes; on elements as well, by their
ranges, as samplers keep them; on elements, each by itself, so that nothing that is defined counts as undefined."""

_ODD = (ArithmeticError, ValueError, IndexError, KeyError, TypeError, AssertionError)
"""Exceptions that rules for well-formed calls may raise on other calls; they prove nothing."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The reason why a draft is invalid; `message` is one line for reports."""

    kind: ProofKind
    message: str


def keeps_page(draft: InvalidDraft, page: Page, *, before_run: bool = False) -> bool:
    """Tell whether the call keeps the rules of its operator's page, as far as `page` goes; see `InvalidDraft.call`."""
    call = draft.call(before_run=before_run)
    try:
        if not well_formed(call):
            return False
        if page == "domain" and (rule := specs()[draft.op].defined_on) is not defined_on_all:
            return rule(draft.model().graph.nodes[0], partial(_element_values, draft))
        return page not in ("elements", "domain") or specs()[draft.op].defined(call)
    except _ODD:
        return True


def _element_values(draft: InvalidDraft, place: int) -> Tensor | None:
    part = draft.parts[place] if place < len(draft.parts) else None
    return None if part is None else part.value


@dataclass(frozen=True, slots=True)
class Prover:
    """Proves calls invalid with `check` (see `checker`) and the operators' rules."""

    check: Check

    def refusal(self, draft: InvalidDraft, presentation: Presentation = "plain", *, bare: bool = True) -> str | None:
        """Return the error of onnx's checker: an empty text if the model is valid, None if the checker crashes."""
        return self.check(emit(draft.model(presentation, bare=bare)))

    def prove(self, draft: InvalidDraft, presentation: Presentation, page: Page) -> Proof | None:
        """Return why `draft`, written in `presentation`, is invalid; None without a proof.

        The call before the violation must be valid, because then the violation is the cause of the error.
        """
        said = self.refusal(draft, presentation) if presentation != "ranks" else ""  # the checker requires all ranks
        if said:
            return Proof("checker", said)
        said = self.refusal(draft) or self.refusal(draft, "constants")
        if said:
            return Proof("runtime", said)
        if page == "none" or keeps_page(draft, page):
            return None
        early = presentation == "plain" and (not draft.fed() or not keeps_page(draft, "form", before_run=True))
        return Proof("rule" if early else "runtime", f"the page of {draft.op} forbids it")

    def prove_undefined(self, draft: InvalidDraft) -> Proof | None:
        """Return why the operator is undefined on the elements of a valid model; None when it may be defined."""
        if self.refusal(draft) or self.refusal(draft, "constants") or keeps_page(draft, "domain"):
            return None
        return Proof("runtime", f"{draft.op} is undefined for these elements")

    def prove_declaration(self, draft: InvalidDraft) -> Proof | None:
        """Return why the declared types of the outputs contradict the call; None when they may be right."""
        said = self.refusal(draft, bare=False)
        return Proof("checker", said) if said and self.refusal(draft) == "" else None
