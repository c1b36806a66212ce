"""The broken rule of a case, judged again: whether a changed call is still invalid by that rule.

A reduction asks this of every smaller program, because a program that has become valid, or that breaks another rule,
is no smaller form of the finding.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from miscompile.base.errors import MiscompileError, ModelError, RejectedDraft
from miscompile.core.tensor import Tensor
from miscompile.producers.disruptive.attributes import shown
from miscompile.producers.disruptive.draft import InvalidDraft
from miscompile.producers.disruptive.operands import INDICES, formals
from miscompile.producers.disruptive.proof import Page, Prover, keeps_page
from miscompile.producers.disruptive.repairs import far_repairs, near_repairs

_NUMBERS = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?\b")
_LISTS = re.compile(r"[{\[(]\s*(?:#\s*,?\s*)+[}\])]")
_CALL = " in the call "
_FORMLESS = frozenset({"dtype", "mixed", "signature", "declared"})
"""Kinds of constraints that the rules of an operator's page do not state."""


Repair = Literal["", "far", "near"]
"""The part of the broken place that must change to make a call valid: all of it, or one entry; "" where not known."""


@dataclass(frozen=True, slots=True)
class Violation:
    """The broken rule that a case's recipe records.

    `kind` is the kind of constraint; `place` the part of the call, as `Broken` names it, "" where the recipe is from a
    release that did not record it; `detail` a line for people.
    """

    op: str
    kind: str
    place: str
    detail: str

    @property
    def places(self) -> tuple[int, ...]:
        """The places of the broken operands; empty where no operand is broken."""
        part, _, which = self.place.partition(" ")
        return tuple(map(int, which.split(","))) if part == "operand" else ()


@dataclass(frozen=True, slots=True)
class Standing:
    """The judges' answers about one call. Two calls of one operator that break the same rule have equal standings.

    `said`: the checker's error without its numbers, "" if it has none. `page`: the operator's page forbids the call.
    `taken`: the operator takes the element type of every operand. `repair`: the call is valid when the broken place is
    changed that much, so that no other rule is broken; "" where no repair was found or none was searched for.
    """

    said: str
    page: bool
    taken: bool
    repair: Repair

    @property
    def invalid(self) -> bool:
        """Tell whether some judge refuses the call."""
        return bool(self.said) or self.page

    def same_rule(self, original: "Standing") -> bool:
        """Tell whether a call of this standing breaks the rule of the `original`, and no other rule."""
        same = (self.said, self.page, self.taken) == (original.said, original.page, original.taken)
        return same and self.repair in ("near", original.repair)


def violation_of(recipe: Mapping[str, Any]) -> Violation:
    """Return the broken rule that `recipe` records. Raises ModelError when it records none."""
    broken = recipe.get("broken", {})
    op, kind = recipe.get("op"), broken.get("kind")
    if not op or not kind:
        raise ModelError("the recipe does not record which rule of which operator is broken")
    return Violation(str(op), str(kind), str(broken.get("place", "")), str(broken.get("detail", "")))


def standing(prover: Prover, draft: InvalidDraft, violation: Violation, *, repair: bool = True) -> Standing:
    """Judge the call of `draft`; with `repair` False no repair is searched for.

    Raises ModelError when the place that was broken is no longer there.
    """
    _require_place(draft, violation)
    page = page_of(draft, violation)
    said = masked(refusal(prover, draft, violation))
    forbidden = page != "none" and not keeps_page(draft, page)
    found = Standing(said, forbidden, _is_taken(draft), "")
    return replace(found, repair=_repair(prover, draft, violation)) if repair and found.invalid else found


def refusal(prover: Prover, draft: InvalidDraft, violation: Violation) -> str:
    """Return the checker's error in the call with all shapes, if necessary all elements, visible; "" if it is valid.

    A wrong declaration counts only where the call itself is valid.
    """
    said = prover.refusal(draft) or prover.refusal(draft, "constants") or ""
    if violation.kind != "declared":
        return said
    return "" if said else prover.refusal(draft, bare=False) or ""


def page_of(draft: InvalidDraft, violation: Violation) -> Page:
    """Return which rules of the operator's page may prove this kind of violation; see `Broken`."""
    if violation.kind in _FORMLESS:
        return "none"
    if violation.kind == "domain":
        return "domain"
    if violation.kind != "contents" or not violation.place.startswith("operand "):
        return "form"
    names = [formal.name for formal in formals(draft)]
    return "elements" if all(names[place] in INDICES for place in violation.places) else "form"


def masked(message: str) -> str:
    """Return a checker's message without numbers and lists of them; names of types keep theirs."""
    return _LISTS.sub("#", _NUMBERS.sub("#", message))


def described(draft: InvalidDraft, violation: Violation) -> str:
    """Return the line for people about the broken rule, with the types, sizes and values of `draft`."""
    part, _, which = violation.place.partition(" ")
    call = f"{_CALL}{_call(draft)}"
    if part == "operand":
        return f"{_operands(draft, violation)}{call}"
    if part == "attribute" and violation.kind == "attribute":
        return f"attribute {which} is {shown(draft.attributes[which].value)}{call}"
    if part == "result":
        kind = draft.outputs[int(which)]
        return f"result {which} is declared as {kind.dtype}{shown(kind.shape)}{call}"
    if part == "operands":
        return f"{len(draft.parts)} operands are given{call}"
    if part == "results":
        return f"{len(draft.outputs)} results are asked for{call}"
    if not violation.place:  # the recorded line names sizes and values that may have changed
        return f"a constraint of {violation.op} is broken ({violation.kind}){call}"
    return f"{violation.detail.partition(_CALL)[0]}{call}"


def _operands(draft: InvalidDraft, violation: Violation) -> str:
    place = violation.places[0]
    part, name = draft.parts[place], formals(draft)[place].name
    assert part is not None, "the place was required before"
    if violation.kind in ("dtype", "mixed"):
        return f"operand {name} has type {part.dtype}"
    if violation.kind == "contents":
        return f"operand {name} holds {part.value.array.ravel()[:8].tolist()}"
    if violation.kind == "domain":
        names = [formal.name for formal in formals(draft)]
        held = [(names[place], draft.parts[place]) for place in violation.places]
        return " and ".join(f"operand {one} holds {it.value.array.ravel()[:8].tolist()}" for one, it in held if it)
    return f"operand {name} has shape {list(part.shape)}"


def _call(draft: InvalidDraft) -> str:
    operands = [shown(part.value) if part is not None else "-" for part in draft.parts]
    given = [f"{name}={_value(attribute.value)}" for name, attribute in sorted(draft.attributes.items())]
    return f"{draft.op}({', '.join([*operands, *given])})"


def _value(value: Any) -> str:  # noqa: ANN401 - the value of an attribute
    return repr(value) if isinstance(value, str) else shown(value) if isinstance(value, tuple | Tensor) else str(value)


def _is_taken(draft: InvalidDraft) -> bool:
    try:
        known = formals(draft)
    except RejectedDraft:
        return True  # an operator without operands, or without a schema
    return all(part is None or part.dtype in one.dtypes for part, one in zip(draft.parts, known, strict=True))


def _repair(prover: Prover, draft: InvalidDraft, violation: Violation) -> Repair:
    """Return how near a repair of the broken place is; "" where the checker crashes, because its restarts take long."""
    kinds: tuple[tuple[Repair, Callable[..., Iterator[InvalidDraft]]], ...] = (
        ("near", near_repairs),
        ("far", far_repairs),
    )
    for found, proposals in kinds:
        for candidate in proposals(draft, violation.kind, violation.place):
            valid = _is_valid(prover, candidate, violation)
            if valid is None:
                return ""
            if valid:
                return found
    return ""


def _is_valid(prover: Prover, draft: InvalidDraft, violation: Violation) -> bool | None:
    """Tell whether no judge refuses the call; None when the checker crashes."""
    page = page_of(draft, violation)
    if page != "none" and not keeps_page(draft, page):
        return False
    bare = violation.kind != "declared"
    try:
        said = prover.refusal(draft, bare=bare)
        if said == "":
            said = prover.refusal(draft, "constants", bare=bare)
    except (MiscompileError, OverflowError, ValueError):
        return False  # no model can hold the value
    return None if said is None else said == ""


def _require_place(draft: InvalidDraft, violation: Violation) -> None:
    part, _, which = violation.place.partition(" ")
    missing = (
        (part == "operand" and any(n >= len(draft.parts) or draft.parts[n] is None for n in violation.places))
        or (part == "attribute" and which not in draft.attributes)
        or (part == "result" and int(which) >= len(draft.outputs))
    )
    if missing:
        raise ModelError(f"{violation.op} has no {violation.place}")
