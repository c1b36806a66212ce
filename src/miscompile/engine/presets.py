"""Presets: the producers and checks of a campaign that imitate published systems."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """The choices of a preset: specs of producers (none: the default ones), and names of checks (none: the default).

    `help` is a line for people.
    """

    producers: tuple[str, ...]
    checks: tuple[str, ...]
    help: str


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
}
"""By name, as `--preset` takes them."""
