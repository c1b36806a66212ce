"""`reduce` and `explain`: the triage of a finding, or of a model on a target, and reduction for a predicate."""

import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

import onnx

from miscompile.api.findings import CampaignFinding, inputs_of, onnx_of
from miscompile.api.models import Arrays, OnnxModel, model_of
from miscompile.api.sighting import LIMIT_SECONDS, TESTS, ModelTests, plan_of_tests, sight
from miscompile.base.errors import ModelError, UsageError
from miscompile.base.rng import stream
from miscompile.core.events import ProgressListener, unheard
from miscompile.core.tensor import Array
from miscompile.engine import single
from miscompile.engine.wiring import oracle_context, triage_settings
from miscompile.environments.resolve import versions_of
from miscompile.findings import folder
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.reports.forms import form_of
from miscompile.reports.issue import RULES, boundary_rows, culprit_text
from miscompile.reports.wording import summary_of, title_of
from miscompile.triage.attribution import to_stored
from miscompile.triage.conclude import triage
from miscompile.triage.reduce.engine import Budget, reduce_case
from miscompile.triage.reduce.predicates import (
    ModelDrafts,
    ModelPredicate,
    PredicateHolds,
    PredicateRunner,
    case_of,
)

REDUCE_SECONDS = 120.0
"""Time limit of a reduction in seconds, as that of `miscompile reduce`."""

EXPLAIN_SECONDS = 20.0
"""Time limit of the reduction that an explanation begins with, as in a campaign."""


@dataclass(frozen=True, slots=True, eq=False)
class ReducedModel:
    """The smallest model that was found.

    `inputs` are arrays by name on which a target shows the bug; empty where a predicate decided. `steps` names the
    kinds of change that helped, in order; `tries` counts the candidates that were run or asked about; `complete` is
    False when a limit ended the search.
    """

    model: onnx.ModelProto
    inputs: Mapping[str, Array]
    steps: tuple[str, ...]
    tries: int
    complete: bool


@dataclass(frozen=True, slots=True)
class BoundaryRow:
    """One thing of the reduced model that was varied: with which values the bug shows, and with which it does not."""

    aspect: str
    shows: str
    works: str


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """All that triage knows about one bug.

    `title` and `summary` say what a user of the compiler sees, `cause` what is known of the cause, as markdown.
    `culprits` are the passes that must be on (empty: none is to blame); `boundary` the values of types, ranks, sizes,
    operands and opsets that show the bug and that do not; `needs` the options, besides the compiler's defaults, without
    which it does not show. `versions` are those of the compiler's packages; `first_bad` is the first release that shows
    it and `last_good` the last one before, empty when nobody has searched. `rule` says which comparison decided, and
    `why` what that means for rounding. `model` and `inputs` are the reduced case; `script` is a standalone script,
    empty while there is none. `status` is that of a finding; `unconfirmed` means that a fresh process did not show it.
    """

    title: str
    summary: str
    cause: str
    culprits: tuple[str, ...]
    boundary: tuple[BoundaryRow, ...]
    needs: tuple[str, ...]
    versions: Mapping[str, str]
    first_bad: str
    last_good: str
    rule: str
    why: str
    model: onnx.ModelProto
    inputs: Mapping[str, Array]
    script: str
    status: FindingStatus


@overload
def reduce(subject: CampaignFinding, *, time: float = REDUCE_SECONDS) -> ReducedModel: ...
@overload
def reduce(
    subject: OnnxModel, shows: ModelPredicate, *, time: float | None = None, tries: int = 10_000
) -> ReducedModel: ...
@overload
def reduce(
    subject: OnnxModel,
    shows: str | Sequence[str],
    *,
    inputs: Arrays | None = None,
    tests: int = TESTS,
    seed: int = 0,
    time: float = REDUCE_SECONDS,
    limit_seconds: float = LIMIT_SECONDS,
) -> ReducedModel: ...
def reduce(
    subject: CampaignFinding | OnnxModel,
    shows: ModelPredicate | str | Sequence[str] | None = None,
    *,
    time: float | None = None,
    tries: int = 10_000,
    inputs: Arrays | None = None,
    tests: int = TESTS,
    seed: int = 0,
    limit_seconds: float = LIMIT_SECONDS,
) -> ReducedModel:
    """Return a smaller model that still shows what `shows` says, found within about `time` seconds.

    - A finding of a campaign is reduced further, and its folder then holds the result. A pending one is examined.
    - A model with a target, or several that vote: the model is tested as by `check`, on `inputs` or on drawn ones, and
      the first disagreement is reduced.
    - A model with a predicate, a function from `onnx.ModelProto` to bool: the result is the smallest model for which it
      was true. It is called in this process and thread, up to `tries` times, and must give the same answer for the same
      model. If `subject` is valid, all candidates are. Weights and documentation may change; inputs stay inputs. An
      exception of the predicate ends the reduction and is raised. A predicate that may crash the process must call
      another one.

    Raises UsageError when `subject` does not show it, cannot be read, or proves to be the bug of another finding of its
    campaign, MissingCompilerError when a target is not
    installed, NothingTested when a target takes the model in no test, StoreError for a finding that is gone.
    """
    if isinstance(subject, CampaignFinding):
        seconds = REDUCE_SECONDS if time is None else time
        stored = single.reduce(subject.out, subject.identifier, seconds, unheard)
        if stored is None:
            raise UsageError(f"{subject.identifier} is the bug of another finding, which now counts it")
        return _reduced(stored)
    if shows is None:
        raise UsageError("name a target that shows the bug, or give a function that tells whether a model does")
    if callable(shows):
        return _reduced_for(subject, shows, Budget(tries, _until(time)))
    how = ModelTests(_targets(shows), tests, seed, limit_seconds, inputs)
    return _reduced(_triaged(subject, how, REDUCE_SECONDS if time is None else time))


@overload
def explain(
    subject: CampaignFinding, *, releases: bool = False, progress: ProgressListener | None = None
) -> Explanation: ...
@overload
def explain(
    subject: OnnxModel,
    target: str | Sequence[str],
    *,
    inputs: Arrays | None = None,
    tests: int = TESTS,
    seed: int = 0,
    time: float = EXPLAIN_SECONDS,
    limit_seconds: float = LIMIT_SECONDS,
) -> Explanation: ...
def explain(
    subject: CampaignFinding | OnnxModel,
    target: str | Sequence[str] | None = None,
    *,
    releases: bool = False,
    progress: ProgressListener | None = None,
    inputs: Arrays | None = None,
    tests: int = TESTS,
    seed: int = 0,
    time: float = EXPLAIN_SECONDS,
    limit_seconds: float = LIMIT_SECONDS,
) -> Explanation:
    """Return what is known about a bug: culprit passes, cause, boundary, and the comparison that decided.

    For a finding of a campaign nothing is run, unless `releases` asks for the first release that shows it: that makes
    environments with other releases, one after the other, and removes them; `progress` gets a line for each.

    For a model on a target, or on several that vote, the model is tested on `inputs` or on drawn ones; the first
    disagreement is reduced for at most `time` seconds, attributed and confirmed, which takes about a minute more.

    Raises UsageError for a finding that is still pending (`reduce` examines it) and for a model on which the target
    shows nothing; MissingCompilerError, NothingTested and StoreError as `reduce` does.
    """
    if not isinstance(subject, CampaignFinding):
        if target is None:
            raise UsageError("explain a model: name the target that shows the bug")
        return _explained(_triaged(subject, ModelTests(_targets(target), tests, seed, limit_seconds, inputs), time))
    if folder.load(subject.out, subject.identifier).status == "pending":
        raise UsageError(f"finding {subject.identifier} is not examined yet; miscompile.reduce(finding) examines it")
    if releases:
        _search_releases(subject, progress or (lambda _: None))
    return _explained(folder.load(subject.out, subject.identifier))


def _search_releases(subject: CampaignFinding, on_progress: ProgressListener) -> None:
    """Store the first release that shows a finding. Raises UsageError when there is no answer, with the reason."""
    for _, history in single.releases(subject.out, [subject.identifier], False, on_progress):
        if isinstance(history, str):
            raise UsageError(f"{subject.identifier}: {history}")


def _targets(given: str | Sequence[str]) -> tuple[str, ...]:
    targets = (given,) if isinstance(given, str) else tuple(given)
    if not targets:
        raise UsageError("name a target")
    return targets


def _until(seconds: float | None) -> Callable[[], bool]:
    end = None if seconds is None else clock.monotonic() + seconds
    return lambda: end is not None and clock.monotonic() > end


def _reduced_for(subject: OnnxModel, predicate: ModelPredicate, budget: Budget) -> ReducedModel:
    model = model_of(subject)
    try:
        check(model)
        valid = True
    except ModelError:
        valid = False
    found = reduce_case(
        case_of(emit(model), {}), PredicateHolds(), PredicateRunner(predicate), stream(0, "reduce"), ModelDrafts(valid),
        budget=budget,
    )  # fmt: skip
    if found is None:
        raise UsageError("the function is not true for the model itself, read without documentation and metadata")
    return ReducedModel(onnx_of(found.case), {}, found.steps, found.tries, found.complete)


def _triaged(subject: OnnxModel, how: ModelTests, seconds: float) -> Stored:
    """Return the first violation around a model as a triaged finding that lies in no folder."""
    seen = sight(subject, how)
    if seen is None:
        names = " and ".join(how.targets)
        raise UsageError(f"{names}: {how.tests} tests of the model show nothing; give it more tests, or inputs")
    plan = plan_of_tests(how)
    versions = {name: version for target in how.targets for name, version in versions_of(target).items()}
    found = seen.found
    stored = to_stored(found.evidence, found.signature, seen.case, versions, oracle_context(plan), test=seen.test)
    settings = replace(triage_settings(plan), seconds=seconds)
    with settings.pool() as pool:
        return triage(stored, settings, pool, Budget(expired=_until(seconds))).stored


def _reduced(stored: Stored) -> ReducedModel:
    facts, case = stored.finding.facts.get("reduction") or {}, stored.finding.case
    return ReducedModel(
        onnx_of(case), inputs_of(case), tuple(facts.get("steps", ())), int(facts.get("tries", 0)),
        bool(facts.get("complete", False)),
    )  # fmt: skip


def _explained(stored: Stored) -> Explanation:
    finding, facts = stored.finding, stored.finding.facts
    signature, history = finding.property.signature, facts.get("releases") or {}
    rule = str(facts.get("rule", ""))
    return Explanation(
        title=title_of(stored),
        summary=summary_of(stored, form_of(finding.property.target)),
        cause=culprit_text(stored),
        culprits=signature.culprits,
        boundary=tuple(BoundaryRow(*row) for row in boundary_rows(facts)),
        needs=tuple(facts.get("needs", ())),
        versions=dict(stored.versions),
        first_bad=str(history.get("first_bad") or ""),
        last_good=str(history.get("last_good") or ""),
        rule=rule,
        why=RULES.get(rule, ""),
        model=onnx_of(finding.case),
        inputs=inputs_of(finding.case),
        script=stored.script,
        status=stored.status,
    )
