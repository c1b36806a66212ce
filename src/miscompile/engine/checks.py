"""The checks of a campaign, by name, with their producers and transforms; presets that imitate published systems.

Every check is a way in which two builds of one compiler differ (levels, passes, their order, the transform of the
program, the device), or a kind of program that has an oracle of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from miscompile.base.errors import UsageError
from miscompile.base.specs import Spec, parse_spec
from miscompile.oracles.optimisation import Family
from miscompile.oracles.registry import campaign_oracles
from miscompile.targets.about import About
from miscompile.targets.derivatives import DERIVATIVE, REWRITINGS
from miscompile.targets.guards import GUARDED
from miscompile.targets.registry import quick_extras, slower_voters_for, voters_for

CHECKS: Mapping[str, str] = {
    "levels": "optimised builds against the unoptimised one, with random passes off, and at lesser levels",
    "equivalence": "equivalent programs out of an e-graph, the simplest and the most complex",
    "resist": "the program with barriers against one class of optimisations or another",
    "exact": "what must not change a bit: constness, order, names, wrapping, function bodies, a second run, threads",
    "functions": "parts of the program as functions: nested, called from several places, rewritten",
    "sequences": "passes in a random order before the compiler's own",
    "dynamic": "one build with symbolic sizes against a build for every size, 0 and 1 among them",
    "disruptive": "invalid programs must be refused, not crash the compiler",
    "memory": "inputs, outputs and initializers between guard pages, fresh memory with two contents; only when named",
    "state": "the optimised build must give the same bits again: a second time, in threads at once, from bound memory",
    "special": "NaN, infinities, signed zeros and the ends of types, against IEEE 754 and the unoptimised build",
    "cost": "time and memory of optimised builds and code, on a doubling series of the program; only when named",
    "forms": "forms of an operator that are refused although the compiler takes others; only when named",
    "gradients": "derivatives of the program, forward and backward, compiled against those that run call by call",
    "votes": "kernels and front end against onnx's reference and others that are installed, by majority",
    "device": "the program on --device against the CPU",
}
"""Names of checks, each with a line of help."""

DEFAULT = ("levels",)

GENERAL = ("strict", "sweep{share=0.15}", "oatest{share=0.25}")
"""Producers of valid programs for every check that compares builds."""

OWN = {"dynamic": "dynamic{share=0.3}", "disruptive": "disruptive{share=0.15}", "special": "special{share=0.3}"}
"""Checks that need programs of their own kind."""

JUDGED = ("state", "memory", "cost", "forms", "votes")
"""Checks of programs of every kind that have an oracle of their own."""

VOTED = frozenset({"votes", "special"})
"""Checks that ask other implementations about what all builds of a compiler share."""

BY_REQUEST = ("memory", "cost", "forms")
"""Checks that `all` leaves out: they take much time for each program, or find what a developer may not have planned."""


def _family(*alternatives: str) -> Family:
    """Parse a family: one text for each alternative, with `;` between transforms that are used together."""
    return tuple(tuple(map(parse_spec, text.split(";"))) for text in alternatives)


_SIMPLEST = "egraph{pick=least, share=1.0, structural=0.0}"

EQUIVALENCE = _family(
    f"egraph{{pick=most}};{_SIMPLEST}",
    f"egraph{{pick=most, layers=1}};{_SIMPLEST}",
    "egraph{pick=most, layers=3, structural=1.0}",
    "egraph{pick=most, exactness=bits}",
    "egraph{pick=random}",
)
"""POLYJUICE's pair, the simplest program and the most complex, each compared with the original (section 4), and more.

The simplest program uses all rules, because few of them apply. The most complex one uses a few groups of rules at a
time, and structural rules.
"""

RESIST = _family(
    "resist",
    "resist{share=0.3}",
    "resist{strategies=gather+where}",
    "resist{strategies=gather+where+transpose+split+cast+max, share=0.6}",
    "resist{strategies=tap}",
    "resist{exactness=rounding, strategies=matmul+transpose}",
)
"""ORTHRUS's twins: with every barrier, with some, without control flow, and with those of the paper (section III-C)."""

EXACT = _family(
    "constness", "opened", "closed", "duplicate", "merge", "order", "rename", "inline", "expand", "wrap", "taps",
    "dead", "identity", "noidentity", "stored", "again", "threads", "wrap{share=0.2}", *("expand{exact=no}",) * 4,
)  # fmt: skip
"""Relations that keep every bit, drawn with equal probability.

Bodies whose steps round come four times, because they alone hold a kernel against the definition of its operator.
"""

_VARIANTS: tuple[dict[str, str], ...] = (
    {"count": "1"},
    {"count": "2", "rewrite": "forward"},
    {"count": "3", "depth": "2", "rewrite": "any"},
    {"count": "2", "rewrite": "closure"},
)


def chosen(names: Sequence[str], abouts: Sequence[About], device: str = "cpu") -> tuple[str, ...]:
    """Return the checks called `names`: the default for none, every check that the targets support for `all`.

    Raises UsageError for an unknown check, or one that a target does not support.
    """
    wanted = tuple(dict.fromkeys(names)) or DEFAULT
    if device != "cpu" and "device" not in wanted:
        wanted = (*wanted, "device")
    if "all" in wanted:
        also = [name for name in wanted if name in BY_REQUEST]
        usual = [name for name in CHECKS if name not in BY_REQUEST and not _obstacle(name, abouts, device)]
        wanted = (*usual, *also)
    others = campaign_oracles()
    for name in wanted:
        if name not in CHECKS and name not in others:
            known = ", ".join(dict.fromkeys((*CHECKS, *others)))
            raise UsageError(f"there is no check '{name}'; there are: {known}, and all")
        obstacle = _obstacle(name, abouts, device)
        if obstacle:
            raise UsageError(f"--check {name}: {obstacle}")
    return wanted


def _obstacle(name: str, abouts: Sequence[About], device: str) -> str:
    """Return the reason why the targets do not support a check; an empty text when they do."""
    if len(abouts) > 1:
        several = "several compilers are held against each other by their results alone; name one target"
        return "" if name == "levels" else several
    about = abouts[0]
    has = ", ".join(about.devices)
    lacks = {
        "levels": (not about.unoptimised, "has no unoptimised build; name further targets to compare it with"),
        "functions": (not functions_of(about), "takes no functions"),
        "memory": (GUARDED not in about.transforms, "does not take memory of ours"),
        "special": (not about.unoptimised, "has no unoptimised build to hold its results against"),
        "gradients": (not about.derivatives, "differentiates no programs"),
        "cost": (not about.unoptimised, "has no unoptimised build to hold its cost against"),
        "forms": (about.lowered, "gets programs through a lowering of this tool, which refuses what it cannot lower"),
        "votes": _no_votes(about),
        "sequences": (not about.sequences, "does not let us order its passes"),
        "dynamic": (not about.dynamic, "does not compile programs with symbolic sizes once for all"),
        "device": (device not in about.devices, f"has no build for the device '{device}'; it has: {has}"),
    }
    lacking, why = lacks.get(name, (False, ""))
    if name == "device" and device == "cpu":
        return "say which device with --device, as in --device cuda"
    return f"{about.title} {why}" if lacking else ""


def _no_votes(about: About) -> tuple[bool, str]:
    """Tell whether nothing can vote about a target's kernels, and why."""
    if about.role != "compiler" or about.lowered or about.executors:
        return True, "has no kernels of its own that read ONNX"
    missing = f"has no other runtime beside it; run `pip install 'miscompile[{quick_extras()}]'`"
    return not (voters_for(about.name) or slower_voters_for(about.name)), missing


def families(checks: Sequence[str], about: About) -> tuple[Family, ...]:
    """Return a family of transforms for each check that has one."""
    found = {
        "functions": functions_of(about), "equivalence": EQUIVALENCE, "resist": RESIST, "exact": relations_of(about),
        "gradients": derivatives_of(about),
    }  # fmt: skip
    return tuple(found[name] for name in checks if name in found)


def relations_of(about: About) -> Family:
    """Return the transforms that keep every bit: those for all targets, and those of the target's adapter."""
    left_out = {GUARDED, *about.function_transforms, *about.altering}
    own = (name for name in about.transforms if name not in left_out)
    return (*EXACT, *((spec,) for name in own for spec in about.variants.get(name, (Spec(name),))))


def functions_of(about: About) -> Family:
    """Return the transforms with functions that a target supports."""
    names = (*about.function_transforms, *(("functions",) if about.functions else ()))
    return tuple((Spec(name).with_options(**options),) for name in names for options in _VARIANTS)


def derivatives_of(about: About) -> Family:
    """Return the derivatives that a target's adapter computes, in each mode, half of them of an equivalent program."""
    own = [Spec(DERIVATIVE).with_options(mode=mode) for mode in about.derivatives]
    rewritten = [spec.with_options(rewriting=name) for spec in own for name in REWRITINGS]
    return tuple((spec,) for spec in (*own * len(REWRITINGS), *rewritten))


def producers_for(checks: Sequence[str]) -> tuple[str, ...]:
    """Return the default producers of a campaign: those of valid programs, and the ones that each check needs."""
    general = GENERAL if any(name not in OWN for name in checks) else ()
    return (*general, *(OWN[name] for name in checks if name in OWN))


@dataclass(frozen=True, slots=True)
class Preset:
    """The choices of a preset: specs of producers (none: the default ones), and names of checks (none: the default).

    `help` is a line for people. With `together`, the quick targets that are installed are compared with each other if
    the user names no target. `nodes` is the number of operators that a graph aims at (None: the producer's own).
    """

    producers: tuple[str, ...]
    checks: tuple[str, ...]
    help: str
    together: bool = False
    nodes: int | None = None


PRESETS: Mapping[str, Preset] = {
    "hirfuzz": Preset(("hirfuzz",), (), "graphs as HIRFUZZ makes them"),
    "polyjuice": Preset(
        ("strict{control=0, containers=0, feeds=3}",),
        ("equivalence",),
        "the simplest program against the most complex one that equals it, as POLYJUICE does",
    ),
    "orthrus": Preset(
        ("strict{control=0, containers=0}",),
        ("resist",),
        "the program against its optimisation-resistant twin, as ORTHRUS does",
    ),
    "oatest": Preset(
        ("oatest",), (), "patterns of optimisations inside seed graphs, as OATest does, and those of --patterns"
    ),
    "voters": Preset(
        (),
        ("levels",),
        "the quick runtimes that are installed against each other, none against itself",
        together=True,
        nodes=3,  # a bug of a front end or a kernel shows with one operator, and known bugs hide less of a small graph
    ),
}
"""By name, as `--preset` takes them."""
