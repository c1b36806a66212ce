"""`miscompile migrate`: operators with the parameters of library tests, through the front ends of compilers."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from miscompile.api.plans import check_out, cpus, default_out, new_seed, triage_seconds_for
from miscompile.base.errors import UsageError
from miscompile.cli import values
from miscompile.cli.campaigns import conduct
from miscompile.cli.options import ready
from miscompile.cli.screens import Verb
from miscompile.cli.verbosity import Verbosity, tell, verbosity, verbosity_options
from miscompile.core.ports import Listener
from miscompile.findings.store import Store
from miscompile.instances.archive import library_in
from miscompile.instances.classes import read_classes
from miscompile.instances.instance import LIBRARIES
from miscompile.migration.coverage import CompilerCoverage, compiler_coverage
from miscompile.migration.plan import DEFAULT_ORDER, ORDERS, MigrationPlan
from miscompile.migration.results import Totals, place_of, read_rows, totals
from miscompile.reports.tables import plain_table
from miscompile.targets.front_ends import FrontEnd, chosen
from miscompile.targets.registry import parse_target

_PRESETS = {"opera": {"order": "opera", "compare": "fixed", "constants": True}}
"""The paper's configuration: its order, its threshold, and its templates."""


@click.command(
    "migrate",
    cls=Verb,
    usual=("--to", "--from", "--time", "--tests", "--operators", "--instances", "--out", "--resume", "--json"),
)
@click.option(
    "--to",
    "targets",
    multiple=True,
    required=True,
    metavar="TARGET",
    help="A compiler, for all of its front ends. One front end, as in openvino{via=torch}; or all. Repeatable.",
)
@click.option(
    "--from",
    "libraries",
    callback=values.names,
    metavar="NAMES",
    help="Only operators of these libraries: onnx, torch, keras.  [default: all, or those of --instances]",
)
@click.option(
    "--time",
    "--budget",
    "seconds",
    callback=values.duration,
    metavar="TIME",
    help="Time for each front end: 90, 5m, 2h, ...  [default: until all tests have run]",
)
@click.option("--tests", type=click.IntRange(min=1), metavar="N", help="Tests for each front end, from the first on.")
@click.option(
    "--order", type=click.Choice(ORDERS), default=DEFAULT_ORDER, show_default=True, help="Which tests go first."
)
@click.option(
    "--preset", type=click.Choice(sorted(_PRESETS)), help="Migrate and compare as that published system does."
)
@click.option(
    "--instances",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path),
    metavar="FILE",
    help="Take the operator instances in FILE, as `miscompile harvest` makes them. Repeatable."
    " [default: those of the libraries' own tests, harvested on first use]",
)
@click.option("--operators", callback=values.names, metavar="NAMES", help="Only these, as in torch.nn.Conv2d,Resize.")
@click.option("--constants", is_flag=True, help="Make all tensors but the first a part of the program.")
@click.option("--level", default="full", show_default=True, metavar="NAME", help="Build level of the compilers.")
@click.option(
    "--compare",
    type=click.Choice(["strict", "fixed"]),
    default="strict",
    show_default=True,
    help="strict: a tolerance by the type and sensitivity of each element; fixed: the literature's 1e-3.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    metavar="N",
    help="Seed of every random choice. [default: a new one, which is printed]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for findings and results. [default: miscompile-out, or the next free miscompile-out-2, ...]",
)
@click.option("--resume", is_flag=True, help="Continue the migration in --out.")
@click.option("--workers", type=click.IntRange(1, 1024), metavar="N", help="Workers. [default: one for each CPU]")
@click.option(
    "--limit-seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="A single run that takes longer is a hang.",
)
@click.option("--limit-memory", metavar="SIZE", callback=values.size, help="Memory of one worker.  [default: 8G]")
@click.option(
    "--triage-time",
    "--patience",
    "patience",
    callback=values.duration,
    metavar="TIME",
    help="Confirm findings for at most this long after the tests; the rest waits for --resume."
    " [default: half of --time, 2m to 10m]",
)
@click.option(
    "--ledger",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="The ledger of known bugs, which campaigns may share.  [default: ledger.db in --out]",
)
@click.option("--install", is_flag=True, help="Install compilers in environments of their own when they are not here.")
@verbosity_options
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, and no progress.")
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Run operators as library tests use them through the front ends of compilers, and keep every disagreement.

    \b
    Examples:
      miscompile migrate --to onnxruntime --time 5m
      miscompile migrate --to openvino --from torch --tests 2000
      miscompile migrate --to all --time 10m --out migration
    \f
    Every test of onnx, PyTorch and Keras that calls an operator gives an instance: the operator with its parameters and
    tensors. Each instance runs as a program of one operator, in the library itself and through each front end. Those
    that are most likely to show different bugs run first. Findings are counted by conversion function.

    \b
    More examples:
      miscompile migrate --to 'tvm{via=torch}' --operators torch.nn.functional.max_pool2d
      miscompile migrate --to openvino==2023.1.0 --preset opera --install
      miscompile migrate --to onnxruntime --instances mine.jsonl.gz

    Findings are folders in OUT/findings, with standalone scripts; OUT/results has a line for each test,
    OUT/totals.json the table.
    Ctrl-C stops cleanly, --resume goes on. Exit code 1 means findings.
    """
    plan = _plan(ctx, given)
    check_out(plan.out, resume=plan.resume)
    fronts = _present(plan.fronts, given["targets"], install=given["install"])
    plan = _resumed(replace(plan, fronts=fronts))
    _check_level(plan)
    head = f"migrating to {plan.title}, seed {plan.seed}, findings go to {plan.out}"

    def rows() -> list[Totals]:
        return [totals(front.name, read_rows(place_of(plan.out, front.name))) for front in plan.fronts]

    def more() -> dict[str, Any]:
        return {"front_ends": [row.as_json() for row in rows()]}

    code = conduct(plan, lambda listeners: _run(plan, listeners), head, as_json=as_json, more=more)
    (plan.out / "totals.json").write_text(json.dumps(more()["front_ends"], indent=2) + "\n", "utf-8")
    covered = _coverage(plan)
    if verbosity(as_json=as_json) > Verbosity.QUIET:
        _print(rows())
        for front, found in covered.items():
            _print_coverage(front, found, plan.out / _COVERAGE)
    return code


def _coverage(plan: MigrationPlan) -> dict[str, list[CompilerCoverage]]:
    """Return the coverage of each front end's operators, and write it; none without classes beside the archives."""
    classes = read_classes(plan.instances)
    if not classes:
        return {}
    found = {
        front.name: compiler_coverage(classes, read_rows(place_of(plan.out, front.name)), plan.operators)
        for front in plan.fronts
    }
    data = {front: [row.as_json() for row in rows] for front, rows in found.items()}
    (plan.out / _COVERAGE).write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    return found


def _run(plan: MigrationPlan, listeners: Sequence[Listener]) -> None:
    from miscompile.migration.run import run

    run(plan, listeners)


def _plan(ctx: click.Context, given: dict[str, Any]) -> MigrationPlan:
    unknown = [name for name in given["libraries"] if name not in LIBRARIES]
    if unknown:
        raise UsageError(f"there is no library '{unknown[0]}'; there are: {', '.join(LIBRARIES)}")
    preset = _PRESETS.get(given["preset"] or "", {})
    for name in preset:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"--preset {given['preset']} sets --{name}; leave one of the two out")
    chosen_options = {**given, **preset}
    if given["patience"] is None:
        chosen_options["patience"] = triage_seconds_for(given["seconds"])
    libraries = given["libraries"] or tuple(dict.fromkeys(map(library_in, given["instances"])))
    return MigrationPlan(
        chosen(given["targets"], libraries),
        given["out"] or default_out(resume=given["resume"]),
        seed=new_seed() if given["seed"] is None else given["seed"],
        workers=given["workers"] or cpus(),
        ledger=str(Path(given["ledger"]).absolute()) if given["ledger"] else "",
        **{
            name: chosen_options[name]
            for name in (
                "order", "seconds", "tests", "level", "compare", "constants", "instances", "operators",
                "limit_seconds", "limit_memory", "resume", "patience",
            )
        },
    )  # fmt: skip


def _present(fronts: Sequence[FrontEnd], targets: Sequence[str], *, install: bool) -> tuple[FrontEnd, ...]:
    """Return the front ends that can run here; print a line for each absent one that the user did not name.

    Raises UsageError for an absent one that the user named, and when none is left.
    """
    found: list[FrontEnd] = []
    missing: list[str] = []
    for front in fronts:
        try:
            ready(front.reference, install=False)
            found.append(FrontEnd(front.library, ready(front.target, install=install)))
        except UsageError as error:
            if front.target in targets and parse_target(front.target).via:
                raise
            missing.append(f"{front.name} is left out: {error}")
    if not found:
        raise UsageError("; ".join(missing))
    for line in missing:
        tell(line)
    return tuple(found)


def _check_level(plan: MigrationPlan) -> None:
    for front in plan.fronts:
        levels = parse_target(front.target).about.levels
        if plan.level not in levels:
            raise UsageError(f"{front.target} has no level '{plan.level}'; there are: {', '.join(levels)}")


def _resumed(plan: MigrationPlan) -> MigrationPlan:
    """Return the plan with seed and options of the stored migration. Raises UsageError for other front ends."""
    if not plan.resume:
        return plan
    with Store.open(plan.out, create=False) as store:
        campaign = store.campaign()
    if campaign is None:
        return plan
    if not campaign.options.get("migration"):
        raise UsageError(f"the campaign in {plan.out} is no migration; continue it with `miscompile fuzz --resume`")
    if campaign.target != plan.title:
        raise UsageError(f"the migration in {plan.out} is to {campaign.target}, not to {plan.title}")
    return replace(plan.resumed(campaign.options), seed=campaign.seed)


_COVERAGE = "coverage.json"
_SHOWN = 12
"""Operators of a table of coverage."""


def _print_coverage(front: str, rows: Sequence[CompilerCoverage], place: Path) -> None:
    """Print the operators that have most pairs which the compiler did not run."""
    ran, unsupported, waiting = (sum(getattr(row, name) for row in rows) for name in ("ran", "unsupported", "waiting"))
    click.echo(
        f"{front}: {ran:,} pairs of classes of parameters were run, {unsupported:,} are in unsupported tests only, "
        f"{waiting:,} in tests that were not run, which leaves {ran / max(ran + waiting, 1):.1%} run of those that are "
        f"supported; all operators are in {place}"
    )
    missing = "classes that were not run"
    table = plain_table("operator", missing, numbers=("run", "unsupported", "not run"), cut={missing})
    for row in sorted(rows, key=lambda row: -row.unsupported - row.waiting)[:_SHOWN]:
        words = ", ".join(f"{factor} {name}" for factor, name, _ in row.missing)
        table.add_row(row.operator, words, f"{row.ran:,}", f"{row.unsupported:,}", f"{row.waiting:,}")
    Console().print(table)


_STATUSES = ("pass", "unsupported", "finding", "memory")


def _print(rows: Sequence[Totals]) -> None:
    names = ("operators", "run", "pass", "unsupported", "wrong", "errors", "deaths", "functions", "dropped")
    table = plain_table("front end", numbers=names)
    for row in rows:
        run = sum(row.statuses.get(name, 0) for name in _STATUSES)
        wrong = sum(row.kinds.get(name, 0) for name in ("wrong", "missing", "shape", "dtype"))
        deaths = sum(row.kinds.get(name, 0) for name in ("death", "hang"))
        counts = (
            row.operators, run, row.statuses.get("pass", 0), row.statuses.get("unsupported", 0), wrong,
            row.kinds.get("exception", 0), deaths, row.converters, row.tests - run,
        )  # fmt: skip
        table.add_row(row.front, *(f"{count:,}" for count in counts))
    Console().print(table)
