"""`miscompile fuzz`: a campaign against one compiler."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from miscompile.api.plans import NO_CORPUS, check_options, check_out, cpus, fuzz_plan, resumed
from miscompile.base.errors import UsageError
from miscompile.cli import values
from miscompile.cli.campaigns import CAMPAIGN_SECTIONS, campaign_options, conduct
from miscompile.cli.options import ready, slice_nodes_option
from miscompile.cli.plan_file import located, options_of, read_plan, settle
from miscompile.cli.screens import Verb
from miscompile.core.ports import Listener
from miscompile.engine.checks import CHECKS, DEFAULT, PRESETS
from miscompile.engine.distributed.shards import LANE_TESTS
from miscompile.engine.plan import Plan
from miscompile.producers.kinds import PRODUCERS
from miscompile.targets.registry import quick_targets

_SECTIONS = {
    **CAMPAIGN_SECTIONS,
    "Models": ("--seed", "--ops", "--dtypes", "--nodes", "--max-rank", "--max-dim", "--opset", "--motifs"),
    "Where models begin": ("--seed-models", "--slice-nodes", "--corpus", "--patterns", "--instances"),
    "How models are made": ("--preset", "--producer", "--guidance"),
    "Machines": ("--install", "--ray", "--ray-python"),
}


def _from_plan(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Make the values of the plan file the defaults of all options."""
    del param
    if value is not None:
        ctx.default_map = settle(read_plan(value), ctx)
    return value


@click.command(
    "fuzz",
    cls=Verb,
    usual=("--time", "--tests", "--seed", "--out", "--resume", "--ops", "--dtypes", "--check", "--preset", "--plan"),
    sections=_SECTIONS,
)
@click.argument("targets", nargs=-1, metavar="TARGET...")
@click.option(
    "--plan",
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
    is_eager=True,
    callback=_from_plan,
    metavar="FILE",
    help="Take the options from this TOML file. Those that are given here as well count more.",
)
@campaign_options
@click.option("--resume", is_flag=True, help="Continue the campaign in --out. Its options stay unless given again.")
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
@click.option(
    "--corpus",
    callback=values.names,
    metavar="NAMES",
    help="Begin from slices of these models of the corpus only: names, packages, or patterns such as 'onnx/*light*';"
    " none: of no model. [default: all, if neither --tests nor operators are given; see `miscompile corpus`]",
)
@slice_nodes_option
@click.option(
    "--check",
    "checks",
    callback=values.names,
    metavar="NAMES",
    help=f"Only these checks. There are: {', '.join(CHECKS)}; all: whatever the compiler can be checked for, without"
    f" memory. [default: all; {', '.join(DEFAULT)} with --producer]",
)
@click.option("--device", default="cpu", show_default=True, metavar="NAME", help="Hold this device against the CPU.")
@click.option(
    "--preset",
    type=click.Choice(sorted(PRESETS)),
    metavar="NAME",
    help=f"Generate and check as a published system does. There are: {', '.join(sorted(PRESETS))} (OPERA's is"
    " `miscompile migrate --preset opera`); voters: compare the quick runtimes that are installed with each other, if"
    " no TARGET is named.",
)
@click.option(
    "--producer",
    "producers",
    multiple=True,
    metavar="SPEC",
    help=f"A producer of cases; can be repeated. There are: {', '.join(PRODUCERS.names)}.",
)
@click.option(
    "--ray",
    metavar="ADDRESS",
    help="Run on all nodes of a Ray cluster: its HOST:PORT, auto (the one that this machine belongs to), or local (a"
    " new one, of this machine alone). With --tests, --workers is the number of lanes that share them on all nodes.",
)
@click.option(
    "--ray-python",
    metavar="PATH",
    help="The Python on the nodes that has miscompile and the compilers. [default: that of their Ray]",
)
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Generate valid models, run them on TARGET with and without optimisation, and keep what disagrees.

    \b
    Examples:
      miscompile fuzz onnxruntime                    five minutes on all CPUs
      miscompile fuzz onnxruntime --time 2h --out nightly
      miscompile fuzz onnxruntime openvino           two, against each other
      miscompile fuzz 'toy{bugs=survivable}'         a toy with planted bugs
    \f
    With several targets they are held against each other, and the one that stands alone is named.

    \b
    More examples:
      miscompile fuzz onnxruntime --tests 10000 --seed 7 --json
      miscompile fuzz onnxruntime --ops Conv,Relu,Add --dtypes float32
      miscompile fuzz --plan nightly.toml                 the options in this file
      miscompile fuzz onnxruntime --resume --time 0       go on until Ctrl-C
      miscompile fuzz onnxruntime==1.20.1                 that release, in an environment of its own
      miscompile fuzz --preset voters                     the quick runtimes that are installed, by majority
      miscompile fuzz onnxruntime --seed-models models/   slices of these models, extended and mutated
      miscompile fuzz onnxruntime --corpus silero-vad     slices of the real models in that package
      miscompile fuzz onnxruntime --instances onnx        operators as onnx's own tests use them, in graphs
      miscompile fuzz onnxruntime --producer pairs        every operator behind every other one; ends by itself
      miscompile fuzz onnxruntime --preset hirfuzz        graphs as HIRFUZZ makes them
      miscompile fuzz onnxruntime --preset oatest         patterns of optimisations inside seed graphs
      miscompile fuzz tvm --preset oatest --patterns relax-patterns
                                                          and patterns of Relax, in Relax programs
      miscompile fuzz onnxruntime --check resist,exact    barriers to optimisations; what must not change a bit
      miscompile fuzz tvm --check levels,functions        functions and their rewritings as well
      miscompile fuzz tvm --check resist --transform 'resist{config=my.toml, classes=mine}'
      miscompile fuzz openvino --out nightly --join       a further campaign in one folder, at the same time
      miscompile fuzz onnxruntime --time 3d --ray auto    on all machines of a Ray cluster

    Every finding is a folder in OUT/findings with the reduced model, a standalone script and an issue text.
    Ctrl-C, SIGTERM and a closed terminal stop cleanly; everything found so far is kept. Exit code 1 means
    findings, 4 that nothing was tested.
    """
    as_json, words = bool(given.pop("as_json")), {name for name in given if _was_given(ctx, name)}
    install = bool(given.pop("install"))
    ray, ray_python = given["ray"], given["ray_python"]
    if ray is not None and "corpus" not in words:
        given["corpus"] = (NO_CORPUS,)  # other machines have their own corpus, or none
    if ray is not None:
        given["workers"] = _lanes_on_ray(given["tests"], given["workers"])
    elif ray_python is not None:
        raise UsageError("--ray-python goes with --ray")
    join = bool(given["join"])
    options = checked_plan(ctx, given)
    check_out(options.out, resume=options.resume, join=join)
    first, *others = (ready(target, install=install) for target in options.targets)
    options = replace(options, target=first, others=tuple(others))
    if options.resume:
        options = resumed(options, words)
        check_options(options)
    from miscompile.engine.coordinator import fuzz

    run = partial(fuzz, options) if ray is None else partial(_fuzz_on_ray, options, ray, ray_python, install)
    head = f"fuzzing {options.title}, seed {options.seed}, findings go to {options.out}"
    return conduct(options, run, head, as_json=as_json)


def _fuzz_on_ray(options: Plan, address: str, python: str | None, install: bool, listeners: Sequence[Listener]) -> None:
    from miscompile.engine.distributed.head import fuzz_on
    from miscompile.engine.distributed.ray_cluster import ray_nodes

    with ray_nodes(address, python, cpus=cpus(), gpus=options.device != "cpu") as nodes:
        fuzz_on(nodes, options, listeners, install=install)


def _lanes_on_ray(tests: int | None, workers: int | None) -> int:
    """Return the number of lanes that share the tests. It must not depend on the cluster: it decides the tests."""
    if tests is None and workers is not None:
        raise UsageError("--ray: --workers goes with --tests; otherwise each node runs a lane for each of its CPUs")
    return workers or -(-(tests or 1) // LANE_TESTS)


def checked_plan(ctx: click.Context, given: dict[str, Any]) -> Plan:
    """Return the plan of the command's values `given`. Raises UsageError, with the line of a plan file if it is wrong.

    `ctx` is the context in which the command line was parsed.
    """
    path: Path | None = given.pop("plan")
    given["targets"] = given["targets"] or (ctx.default_map or {}).get("targets", ())
    preset = PRESETS.get(given["preset"] or "")
    if not given["targets"] and preset is not None and preset.together:
        given["targets"] = quick_targets()
    if not given["targets"] and path is not None:
        raise UsageError(f'{path}: targets is missing, as in targets = ["onnxruntime"]')
    if not given["targets"]:
        raise click.MissingParameter(ctx=ctx, param=next(one for one in ctx.command.params if one.name == "targets"))
    if path is None or any(_was_given(ctx, name, plan=False) for name in ctx.params if name != "plan"):
        return _of_values(given)
    file = read_plan(path)
    names = {str(param.name): key for key, param in options_of(ctx.command).items()}

    usual = ctx.command.make_context("fuzz", list(given["targets"])).params

    def check(keys: Sequence[str]) -> None:
        _of_values({name: given[name] if names.get(name, name) in keys else usual[name] for name in given})

    located(file, check)
    return _of_values(given)


def _of_values(given: Mapping[str, Any]) -> Plan:
    values = {name: value for name, value in given.items() if name not in ("ray", "ray_python")}
    join = bool(values.pop("join"))
    if join and values["resume"]:
        raise UsageError("--join adds a campaign, --resume continues one; say one of them")
    return fuzz_plan(values, join=join)


def _was_given(ctx: click.Context, name: str, *, plan: bool = True) -> bool:
    """Tell whether an option is on the command line or, with `plan`, in the plan file."""
    source = ctx.get_parameter_source(name)
    return source not in (None, ParameterSource.DEFAULT) and (plan or source != ParameterSource.DEFAULT_MAP)
