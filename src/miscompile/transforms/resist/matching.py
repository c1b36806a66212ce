"""Finding the edges that a class of optimisations needs (ORTHRUS, Algorithm 1: SearchOpportunities)."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Node, TensorType
from miscompile.transforms.resist.edges import Edge, Surroundings, edges
from miscompile.transforms.resist.rules import Config, ResistanceRule, Selector


class MatchedEdge(NamedTuple):
    """An edge with the type of its value and the rule that matches it."""

    edge: Edge
    known: TensorType
    rule: ResistanceRule


def search(around: Surroundings, config: Config, classes: frozenset[str]) -> Iterator[MatchedEdge]:
    """Yield the edges that rules of `classes` match, each with the first of these rules, in the order of `edges`.

    Excluded are values other than tensors or of unknown element type, operands that determine shapes, and values that
    such operands are computed from.
    """
    search_for = _Search(around, config)
    for edge in edges(around):
        known = around.type_of(edge.value)
        if known is None or not search_for.may_hold(edge):
            continue
        rules = _candidates(config, classes, *search_for.ends(edge))
        rule = next((rule for rule in rules if search_for.matches(rule, edge, known)), None)
        if rule is not None:
            yield MatchedEdge(edge, known, rule)


_OUTPUT, _DEAD = ">", "!"


@lru_cache(1 << 14)
def _candidates(config: Config, classes: frozenset[str], maker: str, reader: str) -> tuple[ResistanceRule, ...]:
    """Return the rules of `classes` for edges between these ends: an operator, `input`, `constant`, an output, none."""

    def selects(selector: Selector | None, end: str) -> bool:
        if selector is None or end in selector.names:
            return True
        return selector.opaque and end not in config.categories and end not in ("input", "constant", _OUTPUT, _DEAD)

    return tuple(
        rule
        for rule in config.rules
        if rule.kind in classes
        and rule.output == (reader == _OUTPUT)
        and rule.dead == (reader == _DEAD)
        and selects(rule.producer, maker)
        and selects(rule.consumer, reader)
    )


class _Search:
    """Evaluates the conditions of rules on one model."""

    def __init__(self, around: Surroundings, config: Config) -> None:
        self._around = around
        self._config = config
        self._nodes = around.model.graph.nodes
        self._shaping = _shaping(around, config)
        self._neutral: dict[str, bool] = {}

    def may_hold(self, edge: Edge) -> bool:
        """Tell whether a barrier on `edge` affects no shapes or structural operands."""
        node = self._around.node(edge)
        if node is None or edge.value not in self._shaping:
            return True
        structural = edge.slot in self._config.structural.get(node.op, ())
        return not structural and self._shaping.isdisjoint(node.outputs)

    def matches(self, rule: ResistanceRule, edge: Edge, known: TensorType) -> bool:
        """Tell whether the conditions of a candidate hold, other than those on the operators at the ends of `edge`."""
        if rule.dtypes is not None and known.dtype not in rule.dtypes:
            return False
        if rule.ranks is not None and (known.shape is None or len(known.shape) not in rule.ranks):
            return False
        if rule.slots is not None and edge.slot not in rule.slots:
            return False
        if rule.readers and (rule.readers == "one") != (self._around.readers.get(edge.value, 0) == 1):
            return False
        return (
            (rule.constant is None or rule.constant == self._constant(edge))
            and (rule.same_operand is None or rule.same_operand == self._same_operand(edge))
            and (rule.twin is None or rule.twin == self._twin(edge))
            and (rule.foldable is None or rule.foldable == self._foldable(edge))
            and (rule.neutral is None or rule.neutral == self._is_neutral(edge))
            and (not rule.instead or self._changes_nothing(edge, known))
        )

    def ends(self, edge: Edge) -> tuple[str, str]:
        """Return the producer and the reader of an edge, in the notation of `_candidates`."""
        node = self._around.node(edge)
        return self._maker(edge.value), (_DEAD if edge.dead else _OUTPUT) if node is None else _key(node)

    def _maker(self, value: str) -> str:
        place = self._around.makers.get(value)
        if place is not None and self._nodes[place].op != "Constant":
            return _key(self._nodes[place])
        return "constant" if place is not None or value in self._around.constants else "input"

    def _constant(self, edge: Edge) -> bool:
        return edge.value in self._around.constants

    def _same_operand(self, edge: Edge) -> bool:
        """Only the last equal operand matches, because barriers on all would make them one value again."""
        node = self._around.node(edge)
        if node is None or node.inputs.count(edge.value) < 2:
            return False
        return edge.value not in node.inputs[edge.slot + 1 :]

    def _twin(self, edge: Edge) -> bool:
        """An earlier node with this operator reads the value as the same operand."""
        node = self._around.node(edge)
        return node is not None and any(
            place < (edge.consumer or 0) and slot == edge.slot and _key(self._nodes[place]) == _key(node)
            for place, slot in self._around.slots.get(edge.value, ())
        )

    def _foldable(self, edge: Edge) -> bool:
        """All operands of the consumer are constant, and this is the first of them."""
        node = self._around.node(edge)
        if node is None or not all(value in self._around.constants for value in node.inputs if value):
            return False
        return edge.slot == next(slot for slot, value in enumerate(node.inputs) if value)

    def _changes_nothing(self, edge: Edge, known: TensorType) -> bool:
        """The consumer returns its operand unchanged, and has no other used result."""
        node = self._around.node(edge)
        if node is None or edge.slot or node.domain not in ("", "ai.onnx"):
            return False
        if node.op == "Identity":
            return True
        if node.op == "Cast":
            to = node.attributes.get("to")
            return to is not None and to.kind == "int" and to.value == DTYPES[known.dtype].code
        training = len(node.inputs) > 2 and bool(node.inputs[2])
        return node.op == "Dropout" and not training and not any(node.outputs[1:])

    def _is_neutral(self, edge: Edge) -> bool:
        value = self._around.contents.get(edge.value)
        if value is None:
            return False
        if edge.value not in self._neutral:
            self._neutral[edge.value] = _neutral(value)
        return self._neutral[edge.value]


def _neutral(value: Tensor) -> bool:
    """Tell whether all elements are 0, all are 1, or all are true or false."""
    if value.dtype == "string" or not value.array.size:
        return False
    numbers = value.numbers()
    return bool((numbers == 0).all() or (numbers == 1).all() or np.asarray(numbers).dtype == np.bool_)


def _key(node: Node) -> str:
    return node.op if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op}"


def _shaping(around: Surroundings, config: Config) -> frozenset[str]:
    """Return the values read by structural operands, and the small integer values that these are computed from."""
    nodes = around.model.graph.nodes
    found: set[str] = set()
    for node in nodes:
        for slot in config.structural.get(node.op, ()):
            if slot < len(node.inputs) and node.inputs[slot]:
                found.add(node.inputs[slot])
    small = _small_test(around)
    for node in reversed(nodes):
        if not found.isdisjoint(node.outputs):
            found.update(value for value in node.inputs if value and small(value))
    return frozenset(found)


def _small_test(around: Surroundings) -> Callable[[str], bool]:
    """Return the test whether a value may be part of a computation of sizes: rank 0 or 1, of integers or bool."""
    integral = ("int64", "int32", "bool")

    def test(value: str) -> bool:
        known = around.type_of(value)
        return known is not None and known.dtype in integral and known.shape is not None and len(known.shape) <= 1

    return test


def capability(found: MatchedEdge, around: Surroundings, config: Config) -> int:
    """Return the greater of the fusion capabilities of the operators at both ends of an edge: 1 to 6, 0 for none."""
    node = around.node(found.edge)
    maker = around.makers.get(found.edge.value)
    ends = [] if node is None else [config.category(_key(node))]
    if maker is not None:
        ends.append(config.category(_key(around.model.graph.nodes[maker])))
    return max(ends, default=0)
