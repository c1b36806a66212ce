"""Equality saturation as a transform: the simplest, the most complex or a random equivalent of a model.

Source: the paper on POLYJUICE, sections 4.1 to 4.3. The paper compares the two extremes of one e-graph. Here a build
uses one of them, and the oracle compares it with the program itself or with the other extreme.
"""

from dataclasses import dataclass, replace
from typing import Literal

from miscompile.base.errors import RejectedDraft, SpecError
from miscompile.graph.model import Model, TensorType, ValueInfo
from miscompile.transforms.egraph.choice import Pick, Selection, layered, original, simplest
from miscompile.transforms.egraph.engine import mix
from miscompile.transforms.egraph.layers import Space, space_of
from miscompile.transforms.egraph.program import TermProgram, name_key, program_of
from miscompile.transforms.egraph.restore import Layout, Restored, layout, restore
from miscompile.transforms.egraph.saturation import RuleTally, SaturationLimits, chosen, saturate


@dataclass(frozen=True, slots=True)
class Saturated:
    """Replaces a model by an equivalent that equality saturation finds.

    `pick` selects the equivalent: the one with the most operators that has at most `layers` different computations
    of each value besides the cheapest, the one with the fewest operators, or a random one (with layers, too).
    `rounds` and `nodes` limit saturation; `structural` is the mean number of structural rules applied to each value.
    `groups` names the rules or groups of rules to use, joined with `+`; if it is empty, each group of the library is
    used with probability `share`, depending on the seed. `file` contains the user's rules, which are certified
    first; they are used with those of `groups`, or alone if that is empty. `exactness` is the loosest class of
    rules. `taps` is the number of inner values that become additional outputs, after those of the model. `only`
    names the values, joined with `+` (empty: all), whose computation may change; `sites` returns those that do.
    """

    seed: int = 0
    pick: Literal["most", "least", "random"] = "most"
    layers: int = 2
    rounds: int = 2
    nodes: int = 2000
    structural: float = 0.5
    groups: str = ""
    share: float = 0.25
    exactness: Literal["bits", "zero", "rounding"] = "rounding"
    taps: int = 0
    only: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        """Raise SpecError for invalid values."""
        if min(self.layers, self.rounds, self.nodes) < 1 or min(self.structural, self.taps) < 0:
            raise SpecError("layers, rounds and nodes must be at least 1, structural and taps at least 0")
        if not 0 < self.share <= 1:
            raise SpecError("share must be more than 0 and at most 1")
        if self.file:
            chosen(
                self.groups, self.exactness, self.file
            )  # read now, so that an invalid file is reported before it is needed

    def apply(self, model: Model) -> Model:
        """Return the equivalent that the options select, with the same inputs, opset imports, functions and outputs.

        With `taps`, further outputs follow those of the model. Raises RejectedDraft when the result is the model
        itself, apart from nodes that no output needs; SpecError for rules that do not exist.
        """
        program, _ = saturated(model, self)
        selection, found = _best(program, self)
        restored = restore(program, selection, found)
        changed = restored.model
        mine = frozenset(map(id, model.graph.nodes))
        if all(id(node) in mine for node in changed.graph.nodes) and not self.taps:
            raise RejectedDraft("the graph that is extracted is the model itself")
        return tapped(restored, self.taps, self.seed) if self.taps else changed

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the values whose computation differs from that in `model`."""
        return sites(model, self)


def saturated(model: Model, transform: Saturated) -> tuple[TermProgram, RuleTally]:
    """Return `model` in an e-graph after application of the rules, and the number of applications of each rule."""
    rules = chosen(transform.groups, transform.exactness, transform.file)
    program = program_of(model)
    share = 1.0 if transform.groups or transform.file else transform.share
    limits = SaturationLimits(transform.rounds, transform.nodes, transform.structural, share)
    return program, saturate(program, rules, limits, transform.seed)


def sites(model: Model, transform: Saturated) -> tuple[str, ...]:
    """Return the names of the values whose computation `transform` changes.

    With all of them as `only`, the transform returns the same equivalent. With fewer, the other values are computed
    as in the model, and the choice for the named values does not change. With none, the result is the model itself.
    """
    program, _ = saturated(model, transform)
    return _best(program, transform)[0].changed()


def _best(program: TermProgram, transform: Saturated) -> tuple[Selection, Layout]:
    """Return the choice of the options; the selection among candidates for the simplest does not depend on `only`."""
    space = space_of(program)
    only = frozenset(filter(None, transform.only.split("+")))
    kept = frozenset(program.values) - only if only else frozenset()
    if transform.pick != "least":
        pick: Pick = transform.pick
        selection = layered(space, pick, transform.layers, transform.seed, kept)
        return selection, layout(selection)
    place, selection, found = least_of(space)
    if place < 0 or not only:
        return selection, found
    restricted = simplest(space, kept)[place]
    return restricted, layout(restricted)


def least_of(space: Space) -> tuple[int, Selection, Layout]:
    """Return the index of the simplest candidate and its layout; -1 for the program itself."""
    tree, graph = simplest(space)
    candidates = [tree] if graph is tree else [tree, graph]
    layouts = [layout(each) for each in candidates]
    best = min(range(len(layouts)), key=lambda place: layouts[place].operators)
    if layouts[best].operators < space.program.operators():
        return best, candidates[best], layouts[best]
    same = original(space)
    return -1, same, layout(same)


def tapped(restored: Restored, taps: int, seed: int) -> Model:
    """Return the model with `taps` inner values as further outputs, or as many as have a concrete type.

    The selection depends on the seed and the values' names. This is POLYJUICE's rule for graph_out.
    """
    graph = restored.model.graph
    outputs = {info.name for info in graph.outputs}
    types = restored.types
    inner = [name for name in types if name not in outputs]
    ranked = sorted(inner, key=lambda name: mix(seed, name_key(name)))[:taps]
    found = [ValueInfo(name, TensorType(*types[name])) for name in ranked]
    return replace(restored.model, graph=replace(graph, outputs=(*graph.outputs, *found)))
