"""What a campaign checks: by name, with the producers and builds that each check needs.

Every check is a way in which two builds of one compiler differ (levels, passes, their order, the form of the program,
the device), or a kind of program that has an oracle of its own.
"""

from collections.abc import Mapping, Sequence

from miscompile.base.errors import UsageError
from miscompile.targets.about import About

CHECKS: Mapping[str, str] = {
    "levels": "optimised builds against the unoptimised one, with random passes off, and at lesser levels",
    "functions": "parts of the program as functions: nested, called from several places, rewritten",
    "sequences": "passes in a random order before the compiler's own",
    "dynamic": "one build with symbolic sizes against a build for every size, 0 and 1 among them",
    "disruptive": "invalid programs must be refused, not crash the compiler",
    "device": "the program on --device against the CPU",
}
"""Names of checks, each with a line of help."""

DEFAULT = ("levels",)

GENERAL = ("strict", "sweep{share=0.15}")
"""Producers of valid programs for every check that compares builds."""

_OWN = {"dynamic": "dynamic{share=0.3}", "disruptive": "disruptive{share=0.15}"}
"""Checks that need programs of their own kind."""

_VARIANTS = ("{count=1}", "{count=2, rewrite=forward}", "{count=3, depth=2, rewrite=any}", "{count=2, rewrite=closure}")


def chosen(names: Sequence[str], abouts: Sequence[About], device: str = "cpu") -> tuple[str, ...]:
    """Return the checks that `names` ask for: the default for none, `all` for what the targets are able to.

    Raises UsageError for an unknown check, or one that a target cannot have.
    """
    wanted = tuple(dict.fromkeys(names)) or DEFAULT
    if device != "cpu" and "device" not in wanted:
        wanted = (*wanted, "device")
    if "all" in wanted:
        wanted = tuple(name for name in CHECKS if not _obstacle(name, abouts, device))
    for name in wanted:
        if name not in CHECKS:
            raise UsageError(f"there is no check '{name}'; there are: {', '.join(CHECKS)}, and all")
        obstacle = _obstacle(name, abouts, device)
        if obstacle:
            raise UsageError(f"--check {name}: {obstacle}")
    return wanted


def _obstacle(name: str, abouts: Sequence[About], device: str) -> str:
    """Say why the targets cannot be checked so; an empty text when they can."""
    if name != "levels" and len(abouts) > 1:
        return "several compilers are held against each other by their results alone; name one target"
    about = abouts[0]
    lacks = {
        "functions": (not forms_of(about), "takes no functions"),
        "sequences": (not about.sequences, "does not let us order its passes"),
        "dynamic": (not about.dynamic, "does not compile programs with symbolic sizes once for all"),
        "device": (device not in about.devices, f"has no build for the device '{device}'"),
    }
    lacking, why = lacks.get(name, (False, ""))
    if name == "device" and device == "cpu":
        return "say which device with --device, as in --device cuda"
    return f"{about.title} {why}" if lacking else ""


def forms_of(about: About) -> tuple[str, ...]:
    """Return the forms in which programs are presented to a target, for the check of functions."""
    names = (*about.forms, *(("functions",) if about.functions else ()))
    return tuple(f"{name}{options}" for name in names for options in _VARIANTS)


def producers_for(checks: Sequence[str]) -> tuple[str, ...]:
    """Return the producers of a campaign that names none: those of valid programs, and what each check adds."""
    general = GENERAL if any(name not in _OWN for name in checks) else ()
    return (*general, *(_OWN[name] for name in checks if name in _OWN))
