"""Findings of front ends: their scripts, and the second implementation that agrees with the library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from miscompile.base.errors import MiscompileError, UsageError
from miscompile.core.examination import Examination
from miscompile.core.outcome import Outcome, Raised, Values, is_death, status_of
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Violated
from miscompile.instances.code import encoded
from miscompile.instances.instance import Instance
from miscompile.oracles.library import LibraryOracle, answer_of, instance_of
from miscompile.oracles.library_judge import Judgement, judge
from miscompile.oracles.library_reference import LibraryReference
from miscompile.targets.registry import parse_target, second_implementations
from miscompile.triage.library_script import Failure, write_front_script
from miscompile.triage.script import write_script


@dataclass(frozen=True, slots=True)
class LibraryFinding:
    """A violation of `held` as `seen`, an examination of the reduced case in fresh processes."""

    held: LibraryOracle
    seen: Examination
    runner: Runner

    @property
    def evidence(self) -> Evidence:
        """The evidence."""
        assert isinstance(self.seen.verdict, Violated)
        return self.seen.verdict.evidence

    @property
    def reference(self) -> LibraryReference:
        """The library's answer."""
        answer = answer_of(self.seen.runs[0], self.seen.outcomes[0])
        assert isinstance(answer, LibraryReference)
        return answer

    @property
    def outcome(self) -> Outcome:
        """The outcome of the front end's run."""
        return self.seen.outcomes[1]

    @property
    def instance(self) -> Instance:
        """The reduced operator instance."""
        return instance_of(self.evidence.faulty.case)

    def script(self, versions: Mapping[str, str], *, constants: bool) -> str:
        """Return the standalone script. Raises UsageError when the front end has no script lines."""
        evidence, reference = self.evidence, self.reference
        output = int(evidence.details["output"])
        compared = isinstance(self.outcome, Values)
        if self.instance.library == "onnx":
            shown = evidence if compared else replace(evidence, reference=None)
            expected = reference.results[output] if compared else None
            return write_script(evidence.faulty.case, shown, self.outcome, versions=versions, expected=expected)
        failure = Failure(
            evidence.kind,
            str(getattr(self.outcome, "stage", "")),
            evidence.message,
            self.outcome.kind if isinstance(self.outcome, Raised) else "",
            output,
            int(evidence.details["place"]),
            float(evidence.details["allowed"]),
            tuple(value for value in reference.results if value is not None),
        )
        return write_front_script(self.instance, self.held.target, failure, versions, constants=constants)

    def first_script(self, versions: Mapping[str, str], *, constants: bool) -> str:
        """Return the script of a finding that nobody has reduced, empty where none can be written."""
        try:
            return self.script(versions, constants=constants)
        except MiscompileError:
            return ""

    def facts(self, guilty: Sequence[str]) -> dict[str, Any]:
        """Return the facts for a report: the instance, the passes to blame, and the result of the unoptimised build."""
        off = Run(self.evidence.faulty.case, self.held.target, Build("off"), "judge")
        outcome = self.runner.run([off])[0]
        found = self._judged(outcome, self.held.narrowed)
        refused = self.evidence.kind == "refused-form" and found.status == "unsupported"
        same = refused or found.kind == self.evidence.kind
        return {
            "instance": encoded(self.instance).decode(),
            "operator": f"{self.instance.library}:{self.instance.api}",
            "unoptimised": "fails as well" if same else f"{found.status} ({status_of(outcome)})",
            **({"passes": list(guilty)} if guilty else {}),
        }

    def second_opinion(self) -> str | None:
        """Return a compiler whose results agree with the reference evaluator's; None when there is none.

        Only for ONNX, because its evaluator has bugs of its own, and not after a death; an empty text otherwise.
        """
        if self.instance.library != "onnx" or is_death(self.outcome):
            return ""
        for name in second_implementations(parse_target(self.held.target).about.name):
            run = Run(self.evidence.faulty.case, name, Build("off"), "judge")
            try:
                (outcome,) = self.runner.run([run])
            except UsageError:
                continue  # it is installed, and cannot be loaded
            if self._judged(outcome, parse_target(name).about.narrowed).status == "pass":
                return name
        return None

    def _judged(self, outcome: Outcome, narrowed: Mapping[str, str]) -> Judgement:
        return judge(self.reference, outcome, self.held.compare, narrowed)
