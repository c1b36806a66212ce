"""The oracle of forms: a compiler that takes an operator should take it in its other forms as well.

Most refusals are lawful: the compiler lacks an operator, an element type or a version, and says so. But where it takes
a call with the same element types in a form beside it, with an operand as a constant, of another rank or size, without
an attribute, users see the refusal as a bug. The oracle asks for such forms when a program of one operator is refused.
A class of its own (`refused-form`), because a developer may answer that the form was never planned.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.base.specs import Spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Unsupported, Values, status_of
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.graph.check import check
from miscompile.graph.read import read
from miscompile.ops.analysis import reprogram
from miscompile.oracles.kinds import NoOptions, OracleContext, OracleKind
from miscompile.targets.known import known
from miscompile.targets.registry import parse_target
from miscompile.transforms.catalogue import present
from miscompile.transforms.forms.transform import described, forms_of

ORACLE = "forms"
"""The name of this oracle in recipes, and of its rule."""

_FULL = Build("full")


@dataclass(frozen=True, slots=True)
class TakenForms:
    """Asks whether `target` takes other forms of a call that it refuses.

    The property of one finding names the form that is taken (`taken`), and asks for no other.
    """

    target: str
    faulty: Build = _FULL
    taken: Spec | None = None

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the run of the program itself, and that of the form of a finding."""
        del rng
        return (Run(case, self.target, self.faulty), *self._in(case, (self.taken,) if self.taken else ()))

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Ask for further forms step by step, until the compiler takes one or there is none left."""
        own, refused = runs[0], outcomes[0]
        if isinstance(refused, Values):
            return Holds()
        if not isinstance(refused, Unsupported):
            return Inconclusive(f"{status_of(refused)} before any form")  # other oracles judge that
        if self._is_lawful(refused):
            return Inconclusive("refused in every form, as its reason says")
        taken = [
            run
            for run, outcome in zip(runs[1:], outcomes[1:], strict=True)
            if isinstance(outcome, Values) and _is_valid(run)
        ]
        if taken:
            return _violated(own, refused, taken)
        further = () if self.taken else self._further(own.case, len(runs) - 1)
        return Needs(further) if further else Inconclusive("refused in every form that was tried")

    def with_faulty(self, build: Build) -> "TakenForms":
        """Return the same property of another build."""
        return replace(self, faulty=build)

    def _further(self, case: Case, asked: int) -> tuple[Run, ...]:
        """Return the runs of the next step after `asked` forms."""
        before = 0
        for step in forms_of(case):
            if step and before == asked:
                return self._in(case, step)
            before += len(step)
        return ()

    def _in(self, case: Case, forms: Sequence[Spec]) -> tuple[Run, ...]:
        return tuple(Run(case, self.target, replace(self.faulty, transform=form)) for form in forms)

    def _is_lawful(self, refused: Unsupported) -> bool:
        spec = parse_target(self.target)
        entry = known(spec.about.name, spec.via).rejection(refused.kind, refused.message)
        return entry is not None and entry.lawful


def _is_valid(run: Run) -> bool:
    """Tell whether the form changes the call and is valid: a compiler may be lenient with an invalid call.

    Then onnx accepts it, and it keeps the rules of its operator's page that onnx does not check.
    """
    shown = present(run.case, run.build.transform)[0].case
    if shown.program == run.case.program:
        return False
    try:
        check(shown.program.payload)
        for feed in shown.feeds:
            reprogram(read(shown.program.payload), feed)
    except (ModelError, RejectedDraft):
        return False
    return True


def _violated(own: Run, refused: Unsupported, taken: Sequence[Run]) -> Violated:
    words = [described(run.build.transform, own.case) for run in taken if run.build.transform]
    message = f"refused at {refused.stage}: {refused.message}"
    return Violated(Evidence("refused-form", ORACLE, message, own, taken[0], "", {"forms": words}))


def _hold(options: NoOptions, evidence: Evidence, context: OracleContext, facts: Mapping[str, Any]) -> TakenForms:
    """Return the property of one finding: its build refuses the call, and takes the form of the reference."""
    del options, facts, context
    reference = evidence.reference
    return TakenForms(evidence.faulty.target, evidence.faulty.build, reference.build.transform if reference else None)


def _make(options: NoOptions, context: OracleContext) -> TakenForms:
    del options
    return TakenForms(context.target, Build("full", context.off(context.target)))


KIND = OracleKind(ORACLE, "forms of a call that are refused, beside forms that are taken", _hold, _make)
