"""Replaying a seed in a scope: node by node, unchanged or with changes, with types and facts computed anew.

After any change each call must again be supported by the target and defined for all elements in the intervals of its
operands. A replayed seed is therefore as valid as a generated graph, and its values are ordinary operands.
"""

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import MappingProxyType

import numpy as np

from miscompile.base.dtypes import BY_CODE, DTYPES, FLOATS, is_float
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.edges import reads
from miscompile.graph.model import Attribute, Graph, Node, TensorType
from miscompile.graph.rename import refresh
from miscompile.ops.facts import Facts, measure
from miscompile.ops.registry import specs
from miscompile.ops.seed import Seed
from miscompile.ops.spec import Call, Operand, Shape
from miscompile.ops.values import Range, choose_range, draw
from miscompile.producers.control.forms import blocks
from miscompile.producers.propagation import elements_of, may_be_known
from miscompile.producers.scope import Scope

_DTYPE_ATTRIBUTES = frozenset({"to", "dtype"})
_PINNED = 0.15
"""Probability that a pinned input is fed: few compilers support shapes that they do not know at compile time."""

_MOST_TURNS = 100
"""Greatest number of loop iterations in a slice."""

_UNBOUNDED = Facts(-math.inf, math.inf)

_STATES = {name: Range(-math.inf, math.inf, integral=False) for name in FLOATS} | {"bool": Range(0, 1, integral=True)}
"""Assumed ranges of a body's inputs; for integers other than the iteration number, overflow checks reject the body."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes made to a seed by its replay.

    `dtypes` maps element types to others; `batch` replaces the first size of every input (None: unchanged); `twice` is
    the probability that an operator gets its first operand a second time; `integral` replaces real weights and inputs
    by small integers, so that more results are exact; `fresh` draws inputs from the usual ranges instead of the
    observed ones.
    """

    dtypes: Mapping[str, str] = field(default_factory=dict)
    batch: int | None = None
    twice: float = 0.0
    integral: bool = False
    fresh: bool = False

    def names(self) -> list[str]:
        """Return the changes as words, for a recipe."""
        found = [f"{old} to {new}" for old, new in self.dtypes.items()]
        found += [f"batch {self.batch}"] if self.batch is not None else []
        flags = {"same operand": self.twice > 0, "integers": self.integral, "usual ranges": self.fresh}
        return found + [name for name, on in flags.items() if on]


AS_IT_IS = Changes()


def replay(scope: Scope, seed: Seed, changes: Changes = AS_IT_IS) -> dict[str, Operand]:
    """Add the inputs, constants and nodes of `seed` to `scope`; return its values by their names in the seed.

    Raises RejectedDraft when the target does not support a call, or a call is invalid or may be undefined after the
    changes; the caller must then roll back to a mark.
    """
    return Player(scope, seed, changes).run()


def has_batch(seed: Seed) -> bool:
    """Tell whether all inputs that are not pinned have the same first size."""
    firsts = {
        info.type.shape[:1]
        for info in seed.graph.inputs
        if info.name not in seed.pinned and isinstance(info.type, TensorType) and info.type.shape is not None
    }
    return len(firsts) == 1 and firsts != {()}


class Player:
    """Replays a seed node by node, so that a caller can add other nodes in between.

    `known` holds the seed's values so far, by their names in the seed; `names_in_bodies` counts the names given to
    values inside bodies. `strict` rejects calls that may overflow
    according to the intervals; otherwise their results have no facts. Every step raises RejectedDraft as `replay` does.

    `before` holds values of the seed, by their names in it, from an earlier scope of the same opset, support and
    strictness. A node whose operands are as they were there gets the results that it had there, because types and facts
    depend on nothing else; only a replay without changes may be given them.
    """

    def __init__(
        self,
        scope: Scope,
        seed: Seed,
        changes: Changes = AS_IT_IS,
        *,
        strict: bool = False,
        before: Mapping[str, Operand] = MappingProxyType({}),
    ) -> None:
        self.scope, self.seed, self.changes = scope, seed, changes
        self.rng: random.Random = scope.rng
        self.known: dict[str, Operand] = {}
        self.strict = strict or bool(changes.dtypes) or changes.fresh or changes.integral
        self._before = before
        self.names_in_bodies = 0

    def run(self) -> dict[str, Operand]:
        """Replay all of the seed, and return its values by their names in it."""
        self.begin()
        for node in self.seed.graph.nodes:
            self.play(node)
        return self.known

    def begin(self, bound: Mapping[str, Operand] = MappingProxyType({})) -> None:
        """Add the inputs, but for those that `bound` gives an operand of the scope to be, and the constants."""
        for info in self.seed.graph.inputs:
            assert isinstance(info.type, TensorType)
            self.known[info.name] = bound.get(info.name) or self._input(info.name, info.type)
        for name, value in self.seed.graph.initializers.items():
            self.known[name] = self._constant(value)

    def play(self, node: Node, instead: Mapping[int, Operand] = MappingProxyType({})) -> tuple[Operand, ...]:
        """Add one of the seed's nodes; operands in `instead`, by position, replace the node's own.

        Returns the results, which become the node's outputs in `known`. A node with bodies allows no replacement.
        """
        results = self._block(node) if has_bodies(node) else self._call(node, instead)
        for name, result in zip(node.outputs, results, strict=True):
            if name:
                self.known[name] = result
        return results

    def _earlier(self, node: Node, read: Iterable[str]) -> list[Operand] | None:
        """Return the results that a node had before; None unless all operands that it reads are as they were."""
        known, before = self.known, self._before
        for name in read:
            if name:
                one, other = known[name], before.get(name)
                if (
                    other is None
                    or one.facts != other.facts
                    or one.value is not other.value
                    or one.shape != other.shape
                    or one.dtype != other.dtype
                ):
                    return None
        found = [before[name] for name in node.outputs if name in before]
        return found if len(found) == len(node.outputs) else None

    def _dtype(self, dtype: str) -> str:
        return self.changes.dtypes.get(dtype, dtype)

    def _input(self, name: str, kind: TensorType) -> Operand:
        pinned = self.seed.pinned.get(name)
        if pinned is not None:
            if self.rng.random() < _PINNED:
                return self.scope.new_pinned(pinned)
            return self.scope.given_constant(pinned, _facts(pinned), free=False)
        dtype, shape = self._dtype(kind.dtype), _sizes(kind)
        if self.changes.batch is not None and shape:
            shape = (self.changes.batch, *shape[1:])
        return self.scope.new_input(dtype, shape, self._range(name, dtype))

    def _range(self, name: str, dtype: str) -> Range:
        seen = self.seed.ranges.get(name)
        if seen is None or (self.changes.fresh and is_float(dtype)):
            return choose_range(dtype, replace(self.scope.style, full=False))
        if is_float(dtype) and self.changes.integral and not seen.integral:
            return choose_range(dtype, replace(self.scope.style, integral=True), (seen.lo, seen.hi))
        return seen

    def _constant(self, value: Tensor) -> Operand:
        dtype = self._dtype(value.dtype)
        if is_float(dtype) and self.changes.integral and value.array.size > 1:
            span = choose_range(dtype, replace(self.scope.style, integral=True), _ends(value))
            drawn = Tensor(dtype, draw(self.rng, dtype, value.shape, span))
            return self.scope.given_constant(drawn, measure(drawn), free=True)
        converted = _converted(value, dtype)
        return self.scope.given_constant(converted, _facts(converted), free=is_float(dtype))

    def _call(self, node: Node, instead: Mapping[int, Operand] = MappingProxyType({})) -> tuple[Operand, ...]:
        earlier = self._earlier(node, node.inputs) if self._before and not instead else None
        operands = [
            instead.get(place) or (self.known[name] if name else None) for place, name in enumerate(node.inputs)
        ]
        if earlier is not None and (earlier[0].value is not None or not may_be_known(node.op, operands, earlier)):
            return self.scope.add_known(node.op, operands, node.attributes, earlier)
        if self._twice(node.op, operands):
            operands[1] = operands[0]
        attributes = {name: self._attribute(name, given) for name, given in node.attributes.items()}
        call = Call(node.op, tuple(operands), attributes, len(node.outputs))
        results = self.scope.apply(call, loose=not self.strict)
        elements = elements_of(call, results, self.scope.opset)
        return results if elements is None else (self.scope.learn(results[0], elements),)

    def _twice(self, op: str, operands: list[Operand | None]) -> bool:
        if not self.changes.twice or len(operands) != 2 or op not in specs() or not specs()[op].elementwise:
            return False
        first, second = operands
        alike = first is not None and second is not None and (first.dtype, first.shape) == (second.dtype, second.shape)
        return alike and self.rng.random() < self.changes.twice

    def _attribute(self, name: str, given: Attribute) -> Attribute:
        if given.kind == "int" and name in _DTYPE_ATTRIBUTES and given.value in BY_CODE:
            return replace(given, value=DTYPES[self._dtype(BY_CODE[given.value].name)].code)
        if given.kind == "tensor" and given.value.dtype in self.changes.dtypes:
            return replace(given, value=_converted(given.value, self._dtype(given.value.dtype)))
        return given

    def _block(self, node: Node) -> tuple[Operand, ...]:
        """Add a node with bodies unchanged; only the types of its results are known."""
        if self.changes != AS_IT_IS:
            raise RejectedDraft(f"{node.op} is not changed")
        if not self._before or self._earlier(node, reads(node)) is None:
            self._require_same_types(node)
            self._require_sound(node)
        names = {name: self.known[name].name for name in dict.fromkeys(reads(node))}
        results = [self._type_of(name) for name in node.outputs]
        names.update((name, name) for name in node.outputs)
        (copy,) = refresh((node,), names, self._inner_name)
        inputs = [self.known[name] if name else None for name in node.inputs]
        return self.scope.add_block(node.op, inputs, copy.attributes, [(kind, _UNBOUNDED) for kind in results])

    @cached_property
    def _written(self) -> Mapping[str, TensorType]:
        return self.seed.types

    def _inner_name(self, _: str) -> str:
        name = f"body{self.names_in_bodies}_{len(self.scope.operands)}"
        self.names_in_bodies += 1
        return name

    def _type_of(self, name: str) -> TensorType:
        kind = self._written.get(name)
        if kind is None:
            raise RejectedDraft("the type of a result is not known")
        return kind

    def _require_same_types(self, node: Node) -> None:
        """Reject a node with bodies when a value that they capture has another type now."""
        for name in reads(node):
            known, kind = self.known[name], self._written.get(name)
            if kind is not None and (known.dtype, known.shape) != (kind.dtype, kind.shape):
                raise RejectedDraft(f"{node.op} is not changed")

    def _require_sound(self, node: Node) -> None:
        """Reject bodies that the target may not support, that may be undefined, or whose loop may not terminate."""
        taken = blocks(self.scope.support, self.scope.opset)
        if not (taken.has(node.op, "own") and taken.has(node.op, "captured")):
            raise RejectedDraft(f"{node.op} is not supported by the target")
        turns = self._turns(node) if node.op == "Loop" else 1.0
        if turns > _MOST_TURNS:
            raise RejectedDraft("a loop may take long")
        for body in node.subgraphs():
            mark = self.scope.mark()
            try:
                self._try(body, turns)
            finally:
                self.scope.rollback(mark)

    def _turns(self, node: Node) -> float:
        return self.known[node.inputs[0]].facts.hi if node.inputs[0] else math.inf

    def _try(self, body: Graph, turns: float) -> None:
        """Add the nodes of a body to a trial scope, with states of any value. Nested bodies are rejected."""
        trial = Player(self.scope, self.seed, AS_IT_IS)
        trial.known = dict(self.known)
        for info in body.inputs:
            kind = info.type
            if not isinstance(kind, TensorType) or kind.shape is None or len(_sizes(kind)) < len(kind.shape):
                raise RejectedDraft("the type of a body's input is not known")
            span = _STATES.get(kind.dtype) or Range(0, turns, integral=True)
            trial.known[info.name] = self.scope.new_input(kind.dtype, _sizes(kind), span)
        trial.known.update((name, self.scope.new_constant(value)) for name, value in body.initializers.items())
        for node in body.nodes:
            if any(True for _ in node.subgraphs()):
                raise RejectedDraft("a body in a body")
            results = (self._literal(node),) if node.op == "Constant" else trial._call(node)
            trial.known.update((name, result) for name, result in zip(node.outputs, results, strict=True) if name)

    def _literal(self, node: Node) -> Operand:
        value = node.attributes.get("value")
        if value is None or not isinstance(value.value, Tensor):
            raise RejectedDraft("a constant of another kind")
        return self.scope.new_constant(value.value)


def has_bodies(node: Node) -> bool:
    """Tell whether a node has bodies, such as If and Loop."""
    return bool(node.attributes) and any(True for _ in node.subgraphs())


def _sizes(kind: TensorType) -> Shape:
    return tuple(int(size) for size in kind.shape or () if isinstance(size, int))


def _ends(value: Tensor) -> tuple[float, float] | None:
    """Return an interval of integers around the weights' range, so that positive weights stay positive."""
    facts = _facts(value)
    return (1.0, 4.0) if facts.lo > 0 else (-4.0, -1.0) if facts.hi < 0 else None


@lru_cache(1 << 12)
def _facts(value: Tensor) -> Facts:
    """Return the facts of a constant, which is measured once; tensors are the same when they are one object."""
    return measure(value)


@lru_cache(1 << 12)
def _converted(value: Tensor, dtype: str) -> Tensor:
    """Return a constant in another float type. Raises RejectedDraft when that type cannot hold its elements."""
    if value.dtype == dtype:
        return value
    numbers = value.numbers()
    if (np.abs(numbers[np.isfinite(numbers)].astype(np.float64)) > DTYPES[dtype].high).any():
        raise RejectedDraft(f"{dtype} cannot hold the constants")
    return tensor(numbers, dtype)
