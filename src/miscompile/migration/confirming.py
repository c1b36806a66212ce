"""Confirmation of migrated findings: seen again, held against the unoptimised build, and shown by a script."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from miscompile.base.errors import MiscompileError, UsageError
from miscompile.core.outcome import Outcome, Raised, Values, is_death, status_of
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Evidence
from miscompile.environments.resolve import python_of
from miscompile.findings.encode import builds_of
from miscompile.findings.folder import Status, Stored
from miscompile.instances.code import decoded
from miscompile.migration.plan import MigrationPlan
from miscompile.migration.pools import Pools
from miscompile.migration.script import Failure, write_front_script
from miscompile.oracles.library_judge import Judgement, judge
from miscompile.oracles.library_reference import Reference, assess, reference_case, with_outputs
from miscompile.producers.instances.migrated import Migrated, migrate
from miscompile.targets.known import known
from miscompile.targets.registry import parse_target
from miscompile.targets.second_implementations import second_implementations
from miscompile.triage.confirm import confirm, confirmed
from miscompile.triage.script import write_script

_SCRIPT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A finding that was seen again: its test, what the library says, what came of it, and how that was judged."""

    test: Migrated
    reference: Reference
    outcome: Outcome
    judgement: Judgement


class Confirming(Pools):
    """Examines pending findings one by one; a context manager, because it keeps the pools of the front end at hand."""

    def __init__(self, plan: MigrationPlan) -> None:
        super().__init__(plan.limits)
        self._plan = plan

    def examine(self, stored: Stored) -> Stored:
        """Return the finding's new state: `confirmed`, `known`, or `unconfirmed` with the reason among its facts."""
        try:
            seen = self._see(stored)
            script = self._script(stored, seen)
        except MiscompileError as error:
            return _unconfirmed(stored, str(error))
        witness = self._witness(stored, seen)
        if witness is None:
            return _unconfirmed(stored, "no other compiler agrees with onnx's reference evaluator")
        shows, said = self._shows(script, stored.finding.property.target)
        off = self._ask(stored.finding.property.target, self._run(stored, seen, Build("off")))
        facts: dict[str, Any] = {
            **stored.finding.facts,
            "reproduced": shows,
            "unoptimised": self._of_unoptimised(stored, seen, off),
            **({"witness": witness} if witness else {}),
        }
        spec = parse_target(stored.finding.property.target)
        bug = known(spec.about.name, spec.via).bug(str(stored.finding.property.signature))
        if bug is not None:
            facts["known"] = {"link": bug.link, "note": bug.note}
        if not shows:
            facts["unconfirmed"] = said
        status: Status = "unconfirmed" if not shows else "known" if bug else "confirmed"
        finding = replace(stored.finding, facts=facts, message=" ".join(seen.judgement.message.split()))
        return replace(stored, finding=finding, status=status, script=script)

    def _see(self, stored: Stored) -> Seen:
        """Run the finding's test again. Raises MiscompileError when it no longer fails in the same way."""
        facts, held = stored.finding.facts, stored.finding.property
        test = migrate(decoded(str(facts["instance"])), constants=self._plan.constants)
        if test is None:
            raise MiscompileError("the instance makes no program")
        library = str(facts["against"])
        found = assess(
            test.instance, test.case, self._ask(library, Run(reference_case(test.case), library, Build("off")))
        )
        if not isinstance(found, Reference):
            raise MiscompileError(f"the library's answer is {found.reason} this time")
        run = Run(with_outputs(test.case, found), held.target, builds_of(facts)[0])
        outcome = self._ask(held.target, run)
        spec = parse_target(held.target)
        judgement = judge(found, outcome, self._plan.compare, spec.about.narrowed)
        if judgement.kind != held.signature.kind:
            raise MiscompileError(f"it shows {judgement.kind or judgement.status} this time")
        return Seen(test, found, outcome, judgement)

    def _witness(self, stored: Stored, seen: Seen) -> str | None:
        """Return a compiler whose results agree with the reference evaluator's; None when there is none.

        Only asked for ONNX, whose library is no judge by itself, and not after a death; an empty text elsewhere.
        """
        if seen.test.instance.library != "onnx" or is_death(seen.outcome):
            return ""
        accused = parse_target(stored.finding.property.target).about.name
        for name in second_implementations(accused):
            run, narrowed = Run(with_outputs(seen.test.case, seen.reference), name, Build("off")), _narrowed(name)
            try:
                said = self._ask(name, run)
            except UsageError:
                continue  # it is installed, and cannot be loaded
            if judge(seen.reference, said, self._plan.compare, narrowed).status == "pass":
                return name
        return None

    def _run(self, stored: Stored, seen: Seen, build: Build) -> Run:
        return Run(with_outputs(seen.test.case, seen.reference), stored.finding.property.target, build)

    def _of_unoptimised(self, stored: Stored, seen: Seen, outcome: Outcome) -> str:
        """Say whether the unoptimised build fails alike; where it does not, the optimiser is at fault."""
        narrowed = _narrowed(stored.finding.property.target)
        found = judge(seen.reference, outcome, self._plan.compare, narrowed)
        return "fails as well" if found.kind == seen.judgement.kind else f"{found.status} ({status_of(outcome)})"

    def _ask(self, target: str, run: Run) -> Outcome:
        return self.pool(target).run([run])[0]

    def _script(self, stored: Stored, seen: Seen) -> str:
        target, judgement = stored.finding.property.target, seen.judgement
        assert judgement.kind is not None
        if seen.test.instance.library == "onnx":
            return self._onnx_script(stored, seen)
        failure = Failure(
            judgement.kind,
            str(getattr(seen.outcome, "stage", "")),
            judgement.message,
            seen.outcome.kind if isinstance(seen.outcome, Raised) else "",
            judgement.output,
            judgement.place,
            judgement.allowed,
            tuple(value for value in seen.reference.results if value is not None),
        )
        return write_front_script(
            seen.test.instance, target, failure, dict(stored.versions), constants=self._plan.constants
        )

    def _onnx_script(self, stored: Stored, seen: Seen) -> str:
        """Return the script that any finding of an ONNX model gets, with the right result written in it."""
        run, judgement = self._run(stored, seen, builds_of(stored.finding.facts)[0]), seen.judgement
        assert judgement.kind is not None
        compared = isinstance(seen.outcome, Values)
        details: Mapping[str, Any] = {"output": judgement.output, "feed": 0, "allowed": judgement.allowed}
        against = Run(run.case, str(stored.finding.facts["against"]), Build("off")) if compared else None
        evidence = Evidence(judgement.kind, "library", judgement.message, run, against, f"y{judgement.output}", details)
        expected: Tensor | None = seen.reference.results[judgement.output] if compared else None
        return write_script(run.case, evidence, seen.outcome, versions=dict(stored.versions), expected=expected)

    def _shows(self, script: str, target: str) -> tuple[bool, str]:
        """Run the script in fresh processes; return whether it showed every time, and else what it said last."""
        with TemporaryDirectory(prefix="miscompile-") as place:
            path = Path(place) / "repro.py"
            path.write_text(script, "utf-8")
            results = confirm(path, python_of(target), seconds=max(_SCRIPT_SECONDS, 2 * self._plan.limit_seconds))
        last = results[-1]
        said = f"the script is {last.status} (exit status {last.code}): {(last.stdout + last.stderr)[-600:]}"
        return confirmed(results), said


def _narrowed(target: str) -> Mapping[str, str]:
    return parse_target(target).about.narrowed


def _unconfirmed(stored: Stored, reason: str) -> Stored:
    facts = {**stored.finding.facts, "reproduced": False, "unconfirmed": reason}
    return replace(stored, finding=replace(stored.finding, facts=facts), status="unconfirmed")
