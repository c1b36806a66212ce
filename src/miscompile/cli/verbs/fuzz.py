"""`miscompile fuzz`: a campaign against one compiler."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource

from miscompile.base.errors import UsageError
from miscompile.cli import values
from miscompile.cli.campaigns import campaign_options, conduct, plan_of, validate
from miscompile.cli.options import check_generation, check_out, ready, slice_nodes_option
from miscompile.engine.checks import CHECKS, DEFAULT, PRESETS
from miscompile.engine.plan import Plan
from miscompile.findings.store import Campaign, Store, holds_campaign
from miscompile.producers.kinds import PRODUCERS
from miscompile.targets.registry import parse_target


@click.command("fuzz", short_help="A campaign against one compiler.")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@campaign_options
@click.option("--resume", is_flag=True, help="Continue the campaign in --out; its options stay unless given again.")
@click.option("--join", is_flag=True, help="Add a campaign to those in --out, which may be running.")
@click.option("--ops", callback=values.names, metavar="NAMES", help="Only these operators, as in Add,Conv.")
@click.option("--dtypes", callback=values.names, metavar="NAMES", help="Only these dtypes, as in float32,int8.")
@click.option("--max-rank", type=click.IntRange(0, 8), metavar="N", help="Largest rank of a tensor.")
@click.option("--max-dim", type=click.IntRange(1, 4096), metavar="N", help="Largest size of a dimension.")
@click.option("--nodes", type=click.IntRange(1, 1000), metavar="N", help="Operators aimed at in a graph.")
@click.option("--motifs", callback=values.probability, metavar="PROB", help="How often known fusion patterns go in.")
@click.option("--guidance/--no-guidance", default=None, help="Steer generation by graph coverage.")
@click.option("--opset", type=click.IntRange(1, 99), metavar="N", help="Version of the standard operator set.")
@click.option(
    "--seed-models",
    type=click.Path(exists=True, file_okay=False, readable=True),
    metavar="DIR",
    help="Begin from slices of the ONNX models below DIR as well.",
)
@click.option(
    "--patterns",
    type=click.Path(exists=True, readable=True),
    metavar="PATH",
    help="Put the patterns in this file, as `miscompile harvest` makes them, into seed graphs as well; for tvm also a"
    " folder, as `miscompile harvest tvm` makes it, whose patterns go into the imported Relax programs.",
)
@click.option(
    "--instances",
    metavar="FILE",
    help="Begin from the operators in FILE as well, with the parameters that library tests gave them, as `miscompile"
    " harvest` makes it; onnx: those of onnx's own tests.",
)
@slice_nodes_option
@click.option(
    "--check",
    "checks",
    callback=values.names,
    metavar="NAMES",
    help=f"What to check: {', '.join(CHECKS)}, or all. [default: {', '.join(DEFAULT)}]",
)
@click.option("--device", default="cpu", show_default=True, metavar="NAME", help="Hold this device against the CPU.")
@click.option(
    "--preset",
    type=click.Choice(sorted(PRESETS)),
    help="Generate and check as that published system does. OPERA's is `miscompile migrate --preset opera`.",
)
@click.option(
    "--producer",
    "producers",
    multiple=True,
    metavar="SPEC",
    help=f"A producer of cases; can be repeated. There are: {', '.join(PRODUCERS.names)}.",
)
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Generate valid models, run them on TARGET with and without optimisation, and keep what disagrees.

    With several targets they are held against each other, and the one that stands alone is named.

    \b
    Examples:
      miscompile fuzz onnxruntime                         five minutes on all CPUs
      miscompile fuzz onnxruntime --time 2h --out nightly
      miscompile fuzz onnxruntime --tests 10000 --seed 7 --json
      miscompile fuzz onnxruntime --ops Conv,Relu,Add --dtypes float32
      miscompile fuzz onnxruntime --resume --time 0       go on until Ctrl-C
      miscompile fuzz onnxruntime==1.20.1                 that release, in an environment of its own
      miscompile fuzz onnxruntime openvino                two compilers against each other
      miscompile fuzz onnxruntime --seed-models models/   slices of these models, extended and mutated
      miscompile fuzz onnxruntime --instances onnx        operators as onnx's own tests use them, in graphs
      miscompile fuzz onnxruntime --preset hirfuzz        graphs as HIRFUZZ makes them
      miscompile fuzz onnxruntime --preset polyjuice      the simplest and the most complex equivalent program
      miscompile fuzz onnxruntime --preset oatest         patterns of optimisations inside seed graphs
      miscompile fuzz tvm --preset oatest --patterns relax-patterns
                                                          and patterns of Relax, in Relax programs
      miscompile fuzz onnxruntime --check resist,exact    barriers to optimisations; what must not change a bit
      miscompile fuzz tvm --check levels,functions        functions and their rewritings as well
      miscompile fuzz onnxruntime --check all             whatever this compiler can be checked for
      miscompile fuzz tvm --check resist --transform 'resist{config=my.toml, classes=mine}'
      miscompile fuzz openvino --out nightly --join       a further campaign in one folder, at the same time
      miscompile fuzz toy                                 a small compiler with planted bugs

    Every finding is a folder in OUT/findings with the reduced model, a standalone script and an issue text.
    Ctrl-C, SIGTERM and a closed terminal stop cleanly; everything found so far is kept. Exit code 1 means findings.
    """
    as_json, words = bool(given.pop("as_json")), {name for name in given if _was_given(ctx, name)}
    install = bool(given.pop("install"))
    join = bool(given.pop("join"))
    if join and given["resume"]:
        raise UsageError("--join adds a campaign, --resume continues one; say one of them")
    options = replace(_options(given, existing=join), number=0 if join else 1)
    for target in options.targets:
        parse_target(target)
    check_out(options.out, resume=options.resume, join=join)
    _check(options)
    first, *others = (ready(target, install=install) for target in options.targets)
    options = replace(options, target=first, others=tuple(others))
    if options.resume:
        options = _resumed(options, words)
        _check(options)
    if not as_json:
        click.echo(f"fuzzing {options.title}, seed {options.seed}, findings go to {options.out}", err=True)
    from miscompile.engine.coordinator import fuzz

    return conduct(options, lambda listeners: fuzz(options, listeners), as_json=as_json)


def _check(options: Plan) -> None:
    """Raise UsageError for invalid options, before anything is installed."""
    check_generation(options)
    validate(options)


def _was_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) not in (None, ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)


def _options(given: dict[str, Any], *, existing: bool) -> Plan:
    """Return the plan of the given options; without --out, one that joins `existing` campaigns gets the last folder."""
    targets: tuple[str, ...] = given.pop("targets")
    preset: str | None = given.pop("preset")
    if preset is not None:
        if given["producers"] and PRESETS[preset].producers:
            raise UsageError("--preset names its producers; leave --producer out")
        given["producers"] = PRESETS[preset].producers
        given["checks"] = given["checks"] or PRESETS[preset].checks
    if len(set(targets)) < len(targets):
        raise UsageError("a target is named twice; a compiler can be held against another version of it: A==1.2")
    return plan_of(targets, given, resume=given["resume"] or existing)


def _resumed(options: Plan, given: Collection[str]) -> Plan:
    """Return the options with those of the stored campaign. Raises UsageError for another target or seed."""
    if not holds_campaign(options.out):
        return options
    with Store.open(options.out, create=False) as store:
        campaigns = store.campaigns()
    if not campaigns:
        return options
    number = _number(options, campaigns, seeded="seed" in given)
    campaign = campaigns[number]
    names = {"keep_passes": ("steer",), "preset": ("producers", "checks")}
    kept = {meant for name in given for meant in names.get(name, (name,))}
    return replace(options.resumed(campaign.options, kept), seed=campaign.seed, number=number)


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
