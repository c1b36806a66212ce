"""The plan of a campaign from what a caller asks for: the defaults, the checks, and what a resumed one inherits.

The command line and the functions of the API make their plans here. Messages name the options of the command line.
"""

import itertools
import os
import secrets
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import UsageError
from miscompile.engine.arms import arms_of
from miscompile.engine.checks import OWN as OWN_PROGRAMS
from miscompile.engine.checks import PRESETS
from miscompile.engine.checks import chosen as chosen_checks
from miscompile.engine.plan import Plan
from miscompile.engine.seeds import OWN
from miscompile.findings.store import Campaign, Store, holds_campaign
from miscompile.harvest.models.cache import chosen
from miscompile.targets.registry import parse_target

DEFAULT_SECONDS = 300.0
"""Time limit of a campaign in seconds, unless it is given."""

DEFAULT_OUT = Path("miscompile-out")
MIN_OPSET = 13

CHECK_SECONDS, CHECK_TRIAGE_SECONDS = 36.0, 18.0
"""How long a model is tested on one target, and findings are reduced, if nothing else is said: a minute in all."""

_LEAST_TRIAGE, _MOST_TRIAGE = 120.0, 600.0
"""Bounds in seconds of the triage after the tests, unless it is given."""

NO_CORPUS = "none"
"""The value of --corpus that leaves the corpus out."""

LONG = 1800.0
"""Seconds from which a campaign also begins from the operators of onnx's own tests, which takes about half a minute to
prepare."""


def fuzz_plan(given: Mapping[str, Any], *, join: bool = False) -> Plan:
    """Return the plan of a campaign against `given["targets"]`, from the values of the options of `miscompile fuzz`.

    With `join` it is a further campaign in a folder that holds one. Raises UsageError for options that are not valid.
    """
    options = replace(_options(dict(given), existing=join), number=0 if join else 1)
    for target in options.targets:
        parse_target(target)
    check_options(options)
    return options


def check_plan(path: Path, targets: tuple[str, ...], given: Mapping[str, Any]) -> Plan:
    """Return the plan of a check of the model in the file `path`, from the values of the options of `miscompile check`.

    Raises UsageError for options that are not valid.
    """
    given = dict(given)
    if given["seconds"] is None and given["tests"] is None:
        given["seconds"] = CHECK_SECONDS
        given["triage_seconds"] = given["triage_seconds"] or CHECK_TRIAGE_SECONDS
    options = plan_of(targets, {**given, "checks": _of_models(given["checks"], targets)})
    validate(options)
    return replace(options, model=str(path))


def plan_of(targets: tuple[str, ...], given: dict[str, Any], *, resume: bool = False) -> Plan:
    """Return the plan of a campaign from the values of `campaign_options`, and of further options of the plan's names.

    `resume` is for a campaign that continues: without --out it is the last one here.
    """
    seconds, tests, seed = given.pop("seconds"), given.pop("tests"), given.pop("seed")
    out, workers, keep = given.pop("out"), given.pop("workers"), given.pop("keep_passes")
    seconds = limits_of_time(seconds, tests)
    if given.get("triage_seconds") is None:
        given["triage_seconds"] = triage_seconds_for(seconds)
    return Plan(
        targets[0],
        targets[1:],
        seconds=seconds,
        tests=tests,
        seed=new_seed() if seed is None else seed,
        out=out or default_out(resume=resume),
        workers=workers or cpus(),
        steer=not keep,
        **given,
    )


def validate(plan: Plan) -> None:
    """Raise UsageError for an invalid plan: an unknown check, transform or producer, or an option that it lacks.

    Raises StoreError when its file of patterns is damaged.
    """
    from miscompile.producers.kinds import PRODUCERS

    _ = plan.chosen_checks, plan.chosen_transforms
    if plan.scheduled:
        arms_of(plan)
    for name, options in plan.producer_specs():
        PRODUCERS.get(name).check(options)


def check_options(options: Plan) -> None:
    """Raise UsageError for invalid options, before anything is installed."""
    check_generation(options)
    validate(options)


def _options(given: dict[str, Any], *, existing: bool) -> Plan:
    """Return the plan of the given options; without --out, one that joins `existing` campaigns gets the last folder."""
    targets: tuple[str, ...] = given.pop("targets")
    preset: str | None = given.pop("preset")
    if preset is not None:
        if preset not in PRESETS:
            raise UsageError(f"there is no preset '{preset}'; there are: {', '.join(sorted(PRESETS))}")
        if given["producers"] and PRESETS[preset].producers:
            raise UsageError("--preset names its producers; leave --producer out")
        given["producers"] = PRESETS[preset].producers
        given["checks"] = given["checks"] or PRESETS[preset].checks
        given["nodes"] = given["nodes"] or PRESETS[preset].nodes
    if len(set(targets)) < len(targets):
        raise UsageError("a target is named twice; a compiler can be held against another version of it: A==1.2")
    plan = plan_of(targets, {**given, "schedule": True}, resume=given["resume"] or existing)
    plan = replace(plan, corpus=_corpus(plan))
    if given["seconds"] is None:
        plan = _to_its_end(plan)
    if plan.scheduled and plan.instances is None and _is_long(plan) and not (plan.ops or plan.dtypes):
        return replace(plan, instances=OWN)
    return plan


def _to_its_end(plan: Plan) -> Plan:
    """Return a plan for which no time was given: without a limit if the campaign ends by itself."""
    return replace(plan, seconds=None) if plan.finite else plan


def _corpus(plan: Plan) -> tuple[str, ...]:
    """Return the names of the corpus models that a campaign begins from.

    By default they are all, but for a campaign that must repeat itself on any machine (`--tests`), one of chosen
    operators or dtypes, and one of producers that the user names. Raises UsageError for names of none.
    """
    if plan.corpus == (NO_CORPUS,):
        return ()
    if not plan.corpus and (plan.tests is not None or plan.ops or plan.dtypes or not plan.scheduled):
        return ()
    return tuple(one.model.name for one in chosen(plan.corpus or ("*",), required=bool(plan.corpus)))


def _is_long(plan: Plan) -> bool:
    """Tell whether a campaign is so long that it can afford to prepare seeds from library tests."""
    return plan.tests is None and (plan.seconds is None or plan.seconds >= LONG)


def resumed(options: Plan, given: Collection[str]) -> Plan:
    """Return the options with those of the stored campaign. Raises UsageError for another target or seed."""
    if not holds_campaign(options.out):
        return options
    with Store.open(options.out, create=False) as store:
        campaigns = store.campaigns()
    if not campaigns:
        return options
    number = _number(options, campaigns, seeded="seed" in given)
    campaign = campaigns[number]
    names = {"keep_passes": ("steer",), "preset": ("producers", "checks", "nodes")}
    kept = {meant for name in given for meant in names.get(name, (name,))}
    plan = replace(options.resumed(campaign.options, kept), seed=campaign.seed, number=number)
    return plan if "seconds" in given else _to_its_end(plan)


def _number(options: Plan, campaigns: Mapping[int, Campaign], *, seeded: bool) -> int:
    """Return the number of the campaign to resume: the one of these targets, and of the seed if it was given."""
    fitting = {number: one for number, one in campaigns.items() if one.target == options.title}
    if not fitting:
        titles = " and ".join(one.target for one in campaigns.values())
        raise UsageError(f"the campaign in {options.out} tests {titles}, not {options.title}")
    seeds = ", ".join(str(one.seed) for one in fitting.values())
    numbers = [number for number, one in fitting.items() if not seeded or one.seed == options.seed]
    if not numbers:
        raise UsageError(f"the campaign in {options.out} has seed {seeds}; leave --seed out to resume it")
    if len(numbers) > 1:
        raise UsageError(f"campaigns in {options.out} have the seeds {seeds}; say with --seed which one to resume")
    return numbers[0]


def _of_models(checks: tuple[str, ...], targets: tuple[str, ...]) -> tuple[str, ...]:
    """Return `checks` (none: all) without those that make programs of their own.

    Raises UsageError when the user names one of these.
    """
    for name in checks:
        if name in OWN_PROGRAMS:
            raise UsageError(f"--check {name} makes programs of its own; it belongs to `miscompile fuzz`")
    if checks and "all" not in checks:
        return checks
    abouts = [parse_target(target).about for target in targets]
    return tuple(name for name in chosen_checks(("all",), abouts) if name not in OWN_PROGRAMS)


def limits_of_time(seconds: float | None, tests: int | None) -> float | None:
    """Return the time limit in seconds: five minutes by default, none for 0 or when only tests are limited."""
    if seconds is None:
        return DEFAULT_SECONDS if tests is None else None
    return seconds or None


def triage_seconds_for(seconds: float | None) -> float:
    """Return the seconds of triage after tests of so many seconds (None: no limit): half of them, within bounds."""
    return min(max(_LEAST_TRIAGE, (seconds or 2 * _MOST_TRIAGE) / 2), _MOST_TRIAGE)


def default_out(*, resume: bool) -> Path:
    """Return the folder of a campaign that names none: the first free `miscompile-out[-N]`, to resume the last used."""
    last = DEFAULT_OUT
    for number in itertools.count(2):
        following = DEFAULT_OUT.with_name(f"{DEFAULT_OUT.name}-{number}")
        if not last.exists() or (resume and not following.exists()):
            return last
        last = following
    raise AssertionError("counting does not end")


def new_seed() -> int:
    """Return a seed from the operating system's entropy."""
    return secrets.randbits(32)


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def check_generation(options: Plan) -> None:
    """Raise UsageError for an unknown operator, dtype or opset in `options`."""
    from miscompile.ops.registry import specs
    from miscompile.producers.control.forms import FEATURES
    from miscompile.targets.registry import parse_target

    _known("operator", options.ops, {*specs(), *FEATURES}, "`miscompile targets --matrix` lists them")
    _known("dtype", options.dtypes, PLAIN, f"there are: {', '.join(PLAIN)}")
    highest = min(parse_target(target).about.max_opset for target in options.targets)
    if options.opset is not None and not MIN_OPSET <= options.opset <= highest:
        raise UsageError(f"--opset {options.opset}: {options.title} is tested with opsets {MIN_OPSET} to {highest}")


def check_out(out: Path, *, resume: bool, join: bool = False) -> None:
    """Raise UsageError unless OUT can be written and is new, or holds a campaign to resume or to join."""
    holds = holds_campaign(out)
    if join and not holds:
        raise UsageError(f"there is no campaign in {out} to join; leave --join out to start one")
    if resume and not holds:
        raise UsageError(f"there is no campaign in {out} to resume; leave --resume out to start one")
    place = next(one for one in (out.absolute(), *out.absolute().parents) if one.exists())
    if not place.is_dir():
        raise UsageError(f"{place} is a file; choose another --out")
    if not os.access(place, os.W_OK):
        raise UsageError(f"{place} cannot be written; choose another --out")
    if holds and not resume and not join:
        raise UsageError(f"{out} already holds a campaign; continue it with --resume or choose another --out")
    if not (resume or join) and out.is_dir() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty and holds no campaign; choose another --out")


def _known(what: str, names: Collection[str], known: Collection[str], hint: str) -> None:
    lower = {name.lower(): name for name in known}
    for name in names:
        if name not in known:
            meant = lower.get(name.lower())
            raise UsageError(f"there is no {what} '{name}'; " + (f"did you mean {meant}?" if meant else hint))
