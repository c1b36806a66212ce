"""`fuzz` and `check`: campaigns, from the plan to the result. They print nothing and install no signal handlers."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from miscompile.api.findings import CampaignFinding, finding_of
from miscompile.api.models import OnnxModel, file_of
from miscompile.api.plans import check_options, check_out, check_plan, fuzz_plan, resumed
from miscompile.base.errors import MiscompileError, NothingTested, UsageError
from miscompile.core.events import ProgressListener
from miscompile.core.ports import Listener
from miscompile.engine import coordinator
from miscompile.engine.plan import Plan
from miscompile.environments.resolve import prepare
from miscompile.findings.folder import ANNOUNCED
from miscompile.findings.store import Store, holds_campaign
from miscompile.reports.progress import ProgressLines
from miscompile.reports.summary import Summary, summarise, write_summary
from miscompile.reports.writer import IssueWriter, write_clustered_issues, write_missing_issues
from miscompile.targets.registry import DEFAULT_TARGET

CampaignRun: TypeAlias = Callable[[Sequence[Listener]], None]
"""Runs a campaign and informs the listeners; its findings lie in its folder afterwards."""


@dataclass(frozen=True, slots=True)
class CampaignEnd:
    """What is left when a campaign has ended.

    `problems` are lines about findings whose folders are damaged or cannot be written; `stopped` says that an interrupt
    ended it.
    """

    summary: Summary
    problems: tuple[str, ...]
    stopped: bool


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """The result of a campaign. Iteration yields the findings to look at, those that make an exit code 1.

    `out` is its folder and `seed` its seed, with which it can be repeated. `tests` ended, of which `judged` could have
    failed, in `seconds` of wall-clock time. `findings` are all findings, those included that are known, fixed, or did
    not show again. `versions` are those of the compilers' packages. `counters` are all counters by name, as in
    `summary.json`. `problems` are lines about findings whose folders are damaged.
    """

    out: Path
    targets: tuple[str, ...]
    seed: int
    tests: int
    judged: int
    seconds: float
    findings: tuple[CampaignFinding, ...]
    versions: Mapping[str, str]
    counters: Mapping[str, int]
    problems: tuple[str, ...]

    @property
    def announced(self) -> tuple[CampaignFinding, ...]:
        """The findings that are confirmed, or still to be examined."""
        return tuple(finding for finding in self.findings if finding.status in ANNOUNCED)

    def __iter__(self) -> Iterator[CampaignFinding]:
        """Yield the announced findings."""
        return iter(self.announced)

    def __len__(self) -> int:
        """Return the number of announced findings."""
        return len(self.announced)


def fuzz(
    targets: str | Sequence[str] = DEFAULT_TARGET,
    *,
    time: float | None = None,
    tests: int | None = None,
    seed: int | None = None,
    out: "str | os.PathLike[str] | None" = None,
    workers: int | None = None,
    checks: Sequence[str] = (),
    ops: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    opset: int | None = None,
    nodes: int | None = None,
    producers: Sequence[str] = (),
    preset: str | None = None,
    seed_models: "str | os.PathLike[str] | None" = None,
    ledger: "str | os.PathLike[str] | None" = None,
    triage_time: float | None = None,
    limit_seconds: float | None = None,
    limit_memory: int | None = None,
    resume: bool = False,
    install: bool = False,
    progress: ProgressListener | None = None,
) -> CampaignResult:
    """Generate models, run them on a compiler with and without optimisation, and return the disagreements.

    Several `targets` are held against each other. The campaign ends after `time` seconds or after `tests` tests; with
    neither it takes five minutes, and `time=0` goes on until it is stopped. Findings are then reduced for at most
    `triage_time` seconds (default: half of `time`, two to ten minutes); those that are left are `pending`, and
    `resume=True` with the same `out` goes on with them. The same `seed`, `tests` and `workers` make the same tests.

    `out` is the folder of the findings (default: `miscompile-out`, or the next free `miscompile-out-2`, ...); `workers`
    the number of lanes (default: one for each CPU). `checks`, `ops`, `dtypes`, `opset`, `nodes`, `producers`, `preset`
    and `seed_models` are the options of `miscompile fuzz` with these names, and restrict what is tested. `ledger` is
    the file of a ledger of known bugs. A single run that takes more than `limit_seconds` (default: 30) is a hang;
    `limit_memory` is the memory of one worker in bytes. A target with a version, as in `onnxruntime==1.20.1`, runs in
    an environment that is made for it if need be; `install` allows that for a compiler that is not here, too.

    `progress` gets a line of text for each finding and each notice, and every five seconds. An exception that it raises
    stops the campaign and is raised, as KeyboardInterrupt is; what was found until then is kept, and no process stays.

    Raises UsageError for options that cannot work, MissingCompilerError for a target that is not installed,
    NothingTested when no test could be judged and nothing was found, StoreError when `out` cannot be written, and
    ExecutionError when the workers keep dying.
    """
    given = _given(
        time=time, tests=tests, seed=seed, out=out, workers=workers, ledger=ledger, triage_time=triage_time,
        limit_seconds=limit_seconds, limit_memory=limit_memory, checks=checks,
    )  # fmt: skip
    given |= {
        "targets": _names(targets), "ops": tuple(ops), "dtypes": tuple(dtypes), "opset": opset, "nodes": nodes,
        "producers": tuple(producers), "preset": preset, "resume": resume, "corpus": (), "instances": None,
        "seed_models": None if seed_models is None else str(seed_models),
    }  # fmt: skip
    asked = frozenset(name for name, value in given.items() if value not in (None, (), False))
    return _campaign(fuzz_plan(given), install, progress, asked)


def check(
    model: OnnxModel,
    targets: str | Sequence[str] = DEFAULT_TARGET,
    *,
    time: float | None = None,
    tests: int | None = None,
    seed: int | None = None,
    out: "str | os.PathLike[str] | None" = None,
    workers: int | None = None,
    checks: Sequence[str] = (),
    slices: bool = True,
    ledger: "str | os.PathLike[str] | None" = None,
    triage_time: float | None = None,
    limit_seconds: float | None = None,
    limit_memory: int | None = None,
    install: bool = False,
    progress: ProgressListener | None = None,
) -> CampaignResult:
    """Run a model in all ways that a compiler has, on drawn inputs, and return every disagreement.

    It runs with and without optimisation, as it is and in equivalent forms; with `slices`, so do its slices, extended
    and in other settings. Several `targets` are held against each other. It takes a minute unless `time` (seconds) or
    `tests` is given. All other options, `progress` and the errors are those of `fuzz`; a model that is broken, has no
    tensors as inputs, or cannot be fed on this machine is a UsageError as well.
    """
    given = _given(
        time=time, tests=tests, seed=seed, out=out, workers=workers, ledger=ledger, triage_time=triage_time,
        limit_seconds=limit_seconds, limit_memory=limit_memory, checks=checks,
    )  # fmt: skip
    with TemporaryDirectory(prefix="miscompile-") as folder:
        plan = check_plan(file_of(model, Path(folder)), _names(targets), {**given, "slices": slices})
        return _campaign(plan, install, progress)


def conduct(out: Path, run: CampaignRun, listeners: Sequence[Listener] = ()) -> CampaignEnd:
    """Run a campaign whose folder is `out`, and write its issues and its summary.

    They are also written after an interrupt, which `CampaignEnd.stopped` tells, and after a failure, which is raised.
    Raises KeyboardInterrupt when the interrupt came before the campaign was stored.
    """
    issues = IssueWriter(out)
    stopped = False
    try:
        run([*listeners, issues])
    except KeyboardInterrupt:
        if not holds_campaign(out):
            raise
        stopped = True
    except Exception:
        with suppress(MiscompileError, KeyboardInterrupt):  # the failure is what the caller must learn
            leave(out)
        raise
    summary, problems = leave(out)
    return CampaignEnd(summary, tuple(dict.fromkeys(issues.problems + problems)), stopped)


def leave(out: Path) -> tuple[Summary, list[str]]:
    """Write the issues and the summary of a campaign; return the summary, and a line for each problem."""
    problems = write_missing_issues(out)
    with Store.open(out, create=False) as store:
        summary = summarise(store)
    problems += write_clustered_issues(out, summary.clusters)
    write_summary(out, summary)
    return summary, problems


def _campaign(
    plan: Plan, install: bool, progress: ProgressListener | None, asked: frozenset[str] = frozenset()
) -> CampaignResult:
    """Run a campaign; a resumed one inherits all options but those in `asked`."""
    check_out(plan.out, resume=plan.resume)
    tell: ProgressListener = progress or (lambda _: None)
    first, *others = (prepare(target, tell, install=install) for target in plan.targets)
    plan = replace(plan, target=first, others=tuple(others))
    if plan.resume:
        plan = resumed(plan, asked)
        check_options(plan)
    listeners = [] if progress is None else [ProgressLines(progress, plan.seconds, plan.tests)]
    end = conduct(plan.out, partial(coordinator.fuzz, plan), listeners)
    if end.stopped:
        raise KeyboardInterrupt
    result = _result(plan, end)
    reason = end.summary.untested or end.summary.only_slices
    if reason and not result.announced:
        raise NothingTested(f"{plan.title}: {reason}")
    return result


def _result(plan: Plan, end: CampaignEnd) -> CampaignResult:
    summary = end.summary
    shown = ("invalid", "unsupported", "deaths", "timeouts", "mismatches_judged_benign")
    return CampaignResult(
        plan.out, plan.targets, plan.seed, summary.tests, summary.judged, summary.seconds,
        tuple(finding_of(plan.out, record) for record in summary.findings), dict(summary.versions),
        {**{name: getattr(summary, name) for name in shown}, **summary.counters}, end.problems,
    )  # fmt: skip


def _names(targets: str | Sequence[str]) -> tuple[str, ...]:
    names = (targets,) if isinstance(targets, str) else tuple(targets)
    if not names:
        raise UsageError("name a target")
    return names


def _given(
    *, time: float | None, tests: int | None, out: "str | os.PathLike[str] | None",
    ledger: "str | os.PathLike[str] | None", triage_time: float | None, checks: Sequence[str],
    limit_seconds: float | None, **rest: Any,  # noqa: ANN401 - options of a plan
) -> dict[str, Any]:  # fmt: skip
    """Return the options of every campaign under their names on the command line. Raises UsageError for a bad one."""
    if (time is not None and time < 0) or (tests is not None and tests < 1):
        raise UsageError("time and tests: a campaign needs at least one test, and no negative time")
    if limit_seconds is not None:
        rest["limit_seconds"] = limit_seconds
    return {
        **rest, "seconds": time, "tests": tests, "out": None if out is None else Path(out),
        "ledger": None if ledger is None else str(ledger), "triage_seconds": triage_time, "checks": tuple(checks),
        "keep_passes": False,
    }  # fmt: skip
