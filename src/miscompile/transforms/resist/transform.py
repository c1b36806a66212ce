"""The transform `resist`: a twin of a model with barriers that disable optimisations, after ORTHRUS (Algorithm 1).

One compiler builds both models with the same options. If their results differ, an optimisation of the named classes
miscompiled one of the named edges. The transform does not change bodies, functions and operands that determine
shapes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from miscompile.base.digest import digest_words
from miscompile.base.errors import RejectedDraft, SpecError
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.rename import redirect
from miscompile.transforms.resist.config import config_of
from miscompile.transforms.resist.edges import Surroundings, surroundings
from miscompile.transforms.resist.matching import MatchedEdge, capability, search
from miscompile.transforms.resist.rules import Config, ResistanceRule
from miscompile.transforms.resist.strategies import MIN_OPSET, STRATEGIES, BarrierBuilder, BarrierExactness, Strategy
from miscompile.transforms.resist.work import GraphAdditions, anchor_of

_FIRST = 10
"""The probability, in sixteenths, with which an applicable strategy is chosen; otherwise the next in order of
preference is."""

_SHARES, _SALTS = 1 << 16, 1 << 44
"""The bits of an edge's random number that determine whether it gets a barrier (lowest) and which variant (highest)."""


@dataclass(frozen=True, slots=True)
class BarrierSite:
    """An edge that gets a barrier, its value, the class and rule that match it, and the chosen strategy."""

    kind: str
    rule: str
    edge: str
    value: str
    strategy: str

    def __str__(self) -> str:
        """Return a line for reports."""
        return f"{self.edge}: {self.kind} ({self.rule}) held by {self.strategy}"


@dataclass(frozen=True, slots=True)
class Resistant:
    """Adds barriers to the edges of a model that optimisations need.

    `classes` and `strategies` restrict the rules and strategies (joined by `+`; empty: all); `strategies` also
    replaces each rule's order of preference. A `share` of the matching edges gets a barrier. `only` restricts the
    barriers to the named edges (joined by `+`), which isolates the edge that causes a difference. `config` is a file
    with the user's rules. With `exactness=rounding` the transform may use barriers that are exact only for finite
    values, and up to the sign of zero.
    """

    seed: int = 0
    classes: str = ""
    strategies: str = ""
    share: float = 1.0
    only: str = ""
    config: str = ""
    exactness: BarrierExactness = "bits"

    def __post_init__(self) -> None:
        """Raise SpecError for unknown names, and for a share outside (0, 1]."""
        if not 0 < self.share <= 1:
            raise SpecError("share is a part of the matching edges: more than 0, at most 1")
        _check("strategy", self.strategies, tuple(STRATEGIES))
        for name in _names(self.strategies):
            if not STRATEGIES[name].exact and self.exactness == "bits":
                raise SpecError(f"strategy '{name}' is not exact to the bit; it needs exactness=rounding")
        _check("class", self.classes, config_of(self.config).classes)

    def apply(self, model: Model) -> Model:
        """Return the twin of `model`, with the same inputs and outputs; further outputs may follow these.

        The twin depends only on the model and the options, and each edge's barrier only on the seed and the edge's
        name. Raises RejectedDraft when no edge matches, or when no matching edge can get a barrier.
        """
        around, chosen = _plan(model, self)
        if not chosen:
            raise RejectedDraft("no edge of the model can be held")
        return _Twin(around, chosen).model()

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the names of the edges that get a barrier, in the syntax of `only`; empty when no edge can get one."""
        return tuple(site.edge for site in sites(model, self))


def sites(model: Model, transform: Resistant) -> tuple[BarrierSite, ...]:
    """Return the barriers that `transform` adds to `model`, so that a difference can be traced to a class and an
    edge.

    An edge causes a difference if the difference disappears with `replace(transform, only=site.edge)`. Empty when no
    edge can get a barrier.
    """
    _, chosen = _plan(model, transform)
    return tuple(
        BarrierSite(found.rule.kind, found.rule.name, found.edge.name, found.edge.value, one.name)
        for found, one, _ in chosen
    )


ChosenBarrier = tuple[MatchedEdge, Strategy, int]
"""An edge, its strategy, and a number that identifies it."""


def _plan(model: Model, transform: Resistant) -> tuple[Surroundings, list[ChosenBarrier]]:
    """Return the edges that get a barrier, with their strategies."""
    config = config_of(transform.config)
    around = surroundings(model)
    if model.opset < MIN_OPSET:
        return around, []
    classes = frozenset(_names(transform.classes) or config.classes)
    only = frozenset(_names(transform.only))
    choice = _Choice(transform, config, around)
    chosen = []
    for found in search(around, config, classes):
        name = found.edge.name
        if only and name not in only:
            continue
        draw = digest_words(transform.seed, "resist", name)
        if not only and draw % _SHARES >= transform.share * _SHARES:
            continue
        strategy = choice.of(found, draw // _SHARES)
        if strategy is not None:
            chosen.append((found, strategy, draw))
    return around, chosen


class _Choice:
    """Chooses the strategy for an edge."""

    def __init__(self, transform: Resistant, config: Config, around: Surroundings) -> None:
        self._transform = transform
        self._named = tuple(STRATEGIES[name] for name in _names(transform.strategies))
        self._config = config
        self._around = around
        self._runtime = anchor_of(around.model) is not None
        self._able: dict[tuple[str, TensorType], tuple[Strategy, ...]] = {}

    def of(self, found: MatchedEdge, draw: int) -> Strategy | None:
        """Return the strategy for an edge, selected by the bits of `draw`; None when no strategy applies."""
        key = (found.rule.name, found.known)
        if key not in self._able:
            self._able[key] = self._allowed(found.rule, found.known)
        able = self._capable([one for one in self._able[key] if self._stands(one, found)], found)
        for strategy in able:
            if draw % 16 < _FIRST:
                return strategy
            draw //= 16
        return able[0] if able else None

    def _allowed(self, rule: ResistanceRule, known: TensorType) -> tuple[Strategy, ...]:
        """Return the strategies for values of a type, in the order of preference."""
        opset, exactness = self._around.model.opset, self._transform.exactness
        return tuple(
            strategy
            for strategy in self._named or (STRATEGIES[name] for name in rule.strategies)
            if strategy.fits(known, opset, exactness) and (self._runtime or not strategy.runtime)
        )

    def _stands(self, strategy: Strategy, found: MatchedEdge) -> bool:
        """Tell whether a strategy applies to this edge: some need an inner value, which becomes an output, others a
        used value."""
        edge = found.edge
        if strategy.build is not None:
            return not edge.dead
        return not found.rule.instead and edge.value in self._around.makers and edge.value not in self._around.outputs

    def _capable(self, able: Sequence[Strategy], found: MatchedEdge) -> Sequence[Strategy]:
        """Return the strategies whose operators fuse less than both ends of the edge, as the rule requires."""
        if found.rule.capability == "ignore":
            return able
        least = capability(found, self._around, self._config)
        strong = [strategy for strategy in able if strategy.category >= least]
        return strong if strong or found.rule.capability == "require" else able


class _Twin:
    """Adds the barriers to a model."""

    def __init__(self, around: Surroundings, chosen: Sequence[ChosenBarrier]) -> None:
        self._graph = around.model.graph
        self._model = around.model
        self._work = GraphAdditions(around.model, anchor_of(around.model))
        self._chosen: dict[int | None, list[ChosenBarrier]] = {}
        for one in chosen:
            self._chosen.setdefault(one[0].edge.consumer, []).append(one)
        self._renamed = self._rename_outputs()

    def model(self) -> Model:
        """Return the twin."""
        nodes: list[Node] = []
        for place, node in enumerate(self._graph.nodes):
            nodes += self._held(place, node)
        taps = self._finish(nodes)
        graph = Graph(
            self._graph.name,
            self._graph.inputs,
            (*self._graph.outputs, *taps),
            (*self._work.prelude, *nodes),
            {**self._graph.initializers, **self._work.constants},
            self._graph.sparse_initializers,
            {self._renamed.get(name, name): known for name, known in self._graph.types.items()},
        )
        return replace(self._model, graph=graph)

    def _rename_outputs(self) -> dict[str, str]:
        """Rename the values of graph outputs with barriers; the results of the barriers take their names."""
        renamed = {}
        for found, strategy, _ in self._chosen.get(None, ()):
            if strategy.build is not None:
                self._work.begin(found.edge.value)
                renamed[found.edge.value] = self._work.fresh("free")
        return renamed

    def _held(self, place: int, node: Node) -> list[Node]:
        """Return the barriers before a node, and the node with the barriers' results as operands."""
        old = redirect(node, self._renamed) if self._renamed else node
        inputs = list(old.inputs)
        outputs = tuple([self._renamed.get(value, value) for value in old.outputs])
        for found, strategy, draw in self._chosen.get(place, ()):
            if strategy.build is not None:
                held = inputs[found.edge.slot] = self._barrier(found, strategy.build, draw)
                if found.rule.instead:
                    return self._named(held, outputs[0])
        new = Node(old.op, tuple(inputs), outputs, old.attributes, old.domain, old.name, old.overload)
        return [*self._work.take(), new]

    def _barrier(self, found: MatchedEdge, build: BarrierBuilder, draw: int) -> str:
        self._work.begin(found.edge.value)
        value = self._renamed.get(found.edge.value, found.edge.value)
        return build(self._work, value, found.known, draw // _SALTS)

    def _named(self, held: str, name: str) -> list[Node]:
        """Return the nodes of the newest barrier, with another name for its result."""
        *before, last = self._work.take()
        return [*before, replace(last, outputs=tuple(name if value == held else value for value in last.outputs))]

    def _finish(self, nodes: list[Node]) -> list[ValueInfo]:
        """Add the barriers before graph outputs, and return the further outputs."""
        for found, strategy, draw in self._chosen.get(None, ()):
            if strategy.build is not None:
                nodes += self._named(self._barrier(found, strategy.build, draw), found.edge.value)
        tapped: dict[str, ValueInfo] = {}
        for found, strategy, _ in (one for group in self._chosen.values() for one in group):
            if strategy.build is None:
                tapped[found.edge.value] = ValueInfo(found.edge.value, found.known)
        return list(tapped.values())


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split("+") if name)


def _check(what: str, text: str, allowed: Sequence[str]) -> None:
    for name in _names(text):
        if name not in allowed:
            raise SpecError(f"there is no resistance {what} '{name}'; there are: {', '.join(allowed)}")
