"""Models that contain the left side of a rule, because random graphs never match some rules."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.rename import NameSupply
from miscompile.transforms.rules.rule import Apply, Bindings, Rule, TermPattern, Variable, symbol_of, type_of, variables
from miscompile.transforms.rules.specimens import dtypes_of, specimen
from miscompile.transforms.rules.translation.nodes import nodes_of

_TRIES = 40

OPSET = 22
"""A late opset, because operators support the most element types there."""


def plant(rule: Rule, rng: random.Random) -> Model:
    """Return a model whose output is the left side of `rule`, its variables being inputs.

    Where the left side is a bare variable, the output is an Identity of an input. Raises RejectedDraft when no
    well-formed instance of the left side is drawn.
    """
    dtypes = dtypes_of(rule)
    environment = specimen(rule, rng.choice(dtypes), rng, _TRIES) if dtypes else None
    kind = None if environment is None else type_of(rule.left, environment)
    if environment is None or kind is None:
        raise RejectedDraft(f"nothing was drawn for the left side of {rule.name}")
    writer = _Writer(environment)
    last = writer.write(rule.left)
    nodes = (*writer.nodes, Node("Identity", (last,), ("result",)))
    inputs = tuple(ValueInfo(name, _declared(environment, name)) for name in variables(rule.left))
    outputs = (ValueInfo("result", TensorType(kind.dtype, kind.shape)),)
    return Model(Graph("planted", inputs, outputs, nodes, writer.initializers), {"": OPSET})


def _declared(environment: Bindings, name: str) -> TensorType:
    kind = environment[name]
    return TensorType(kind.dtype, kind.shape)


@dataclass(slots=True)
class _Writer:
    """Writes an instance of a pattern, equal parts once."""

    environment: Mapping[str, object]
    nodes: list[Node] = field(default_factory=list)
    initializers: dict[str, Tensor] = field(default_factory=dict)
    _names: NameSupply = field(default_factory=lambda: NameSupply(["result"]))
    _made: dict[Apply, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.environment:
            self._names.claim(name)

    def write(self, pattern: TermPattern) -> str:
        """Return the name of the value of `pattern`."""
        if isinstance(pattern, Variable):
            return pattern.name
        if pattern not in self._made:
            children = tuple(self.write(argument) for argument in pattern.arguments)
            symbol = symbol_of(pattern, self.environment)
            name = self._names.fresh(pattern.op.lower())
            nodes, constants = nodes_of(symbol, children, {pattern.output: name}, OPSET, self._names.fresh)
            self.nodes.extend(nodes)
            self.initializers.update(constants)
            self._made[pattern] = name
        return self._made[pattern]
