"""`miscompile plan`: plan files, shown with all their effects or checked."""

import json
from pathlib import Path
from typing import Any

import click

from miscompile.cli.options import json_option
from miscompile.cli.plan_file import plan_text
from miscompile.cli.screens import VerbSet
from miscompile.cli.verbs import fuzz
from miscompile.engine.arms import arms_of
from miscompile.engine.bandit import fixed_weights
from miscompile.engine.plan import Plan
from miscompile.targets.registry import DEFAULT_TARGET

_FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)


@click.group("plan", cls=VerbSet)
def command() -> None:
    """Show or check the TOML files that `miscompile fuzz --plan FILE` takes.

    \b
    Examples:
      miscompile plan show                  the one without a file
      miscompile plan show nightly.toml     this plan with all defaults
      miscompile plan check nightly.toml    the line of the first error
    """


@command.command("show", short_help="Print a plan with all defaults, and its arms.")
@click.argument("file", type=_FILE, required=False)
@json_option
def show(file: Path | None, *, as_json: bool) -> None:
    """Print the plan in FILE with all defaults, and the arms among which the scheduler divides the time.

    Without FILE it is the plan of `miscompile fuzz onnxruntime`. The output is a plan file again.
    """
    options, plan = _read(file)
    values = _effective(options, plan)
    arms = fixed_weights(arms_of(plan)) if plan.scheduled else {}
    if as_json:
        shown = [{"name": name, "weight": round(weight, 5)} for name, weight in arms.items()]
        click.echo(json.dumps({"options": values, "arms": shown}, indent=2))
        return
    click.echo(plan_text(values), nl=False)
    if arms:
        click.echo("\n# The arms, with their shares before any yield is known:")
        for name, weight in arms.items():
            click.echo(f"# {weight:6.1%} {name}")


@command.command("check")
@click.argument("file", type=_FILE)
def check(file: Path) -> None:
    """Check the plan in FILE; an error names the line. Exit code 2 means that it cannot be used."""
    options, plan = _read(file)
    del options
    click.echo(f"{file}: a campaign against {plan.title}")


def _read(file: Path | None) -> tuple[dict[str, Any], Plan]:
    """Return the options of a plan file as the command gets them, and the plan that comes of them."""
    words = [DEFAULT_TARGET] if file is None else ["--plan", str(file)]
    ctx = fuzz.command.make_context("fuzz", words)
    given = {name: value for name, value in ctx.params.items() if name not in ("as_json", "install")}
    return ctx.params, fuzz.checked_plan(ctx, given)


def _effective(options: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Return the options under their names on the command line, without those that are off or not chosen."""
    values: dict[str, Any] = {
        "targets": list(plan.targets),
        "time": plan.seconds or 0,
        "tests": plan.tests,
        "seed": options["seed"],
        "out": str(options["out"]) if options["out"] else None,
        "workers": plan.workers,
        "check": list(plan.checks or (() if plan.others else plan.chosen_checks)),
        "producer": list(plan.producers),
        "transform": [str(one) for one in plan.transforms],
        "ops": list(plan.ops),
        "dtypes": list(plan.dtypes),
        "corpus": list(plan.corpus),
        "slice-nodes": "..".join(map(str, plan.slice_nodes)),
        "keep-passes": not plan.steer,
        "install": bool(options["install"]),
    }
    for name in (
        "max_rank", "max_dim", "nodes", "motifs", "guidance", "opset", "compare", "limit_seconds", "limit_memory",
        "seed_models", "patterns", "instances", "device",
    ):  # fmt: skip
        values[name.replace("_", "-")] = getattr(plan, name)
    return {name: value for name, value in values.items() if value is not None and value not in ([], False)}
