"""The distance of two equivalent graphs: operator counts, sharing, and distances between sequences.

Sequences are compared as POLYJUICE compares the transformations that a compiler applies to two graphs (section 6.3):
elements outside a longest common subsequence, as `diff` counts them, and Levenshtein's edit distance.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from miscompile.graph.edges import producers, reads
from miscompile.graph.model import Graph, Model, Node


@dataclass(frozen=True, slots=True)
class Distance:
    """Two graphs side by side.

    `operators` are the numbers of operator nodes, `kinds` how many more of each operator the second graph has, `uses`
    the mean number of uses of a value that a node makes; `difference` the elements outside the longest common
    subsequence of the two sequences of operators, `edits` their edit distance.
    """

    operators: tuple[int, int]
    kinds: Mapping[str, int]
    uses: tuple[float, float]
    difference: int
    edits: int


def distance(one: Model, other: Model) -> Distance:
    """Return the distance of the main graphs of two models; constants are no operators."""
    left, right = operators(one), operators(other)
    counts, others = Counter(left), Counter(right)
    kinds = {op: others[op] - counts[op] for op in sorted({*counts, *others}) if others[op] != counts[op]}
    return Distance(
        (len(left), len(right)),
        kinds,
        (mean_uses(one.graph), mean_uses(other.graph)),
        lcs_difference(left, right),
        edit_distance(left, right),
    )


def operators(model: Model) -> tuple[str, ...]:
    """Return the operators of the main graph in the order of dataflow: depth first, from the first output on.

    The order does not depend on the order of the nodes. Dead nodes and constants are left out.
    """
    graph = model.graph
    made = producers(graph)
    order: list[int] = []
    seen: set[int] = set()
    for info in graph.outputs:
        if info.name in made:
            _visit(graph, made, made[info.name], seen, order)
    return tuple(_called(graph.nodes[place]) for place in order if graph.nodes[place].op != "Constant")


def _visit(graph: Graph, made: Mapping[str, int], start: int, seen: set[int], order: list[int]) -> None:
    """Append the positions of `start` and its unvisited ancestors to `order`, operands first."""
    stack = [] if start in seen else [(start, _below(graph, made, start))]
    seen.add(start)
    while stack:
        place, waiting = stack[-1]
        if not waiting:
            order.append(place)
            stack.pop()
            continue
        child = waiting.pop()
        if child not in seen:
            seen.add(child)
            stack.append((child, _below(graph, made, child)))


def _below(graph: Graph, made: Mapping[str, int], place: int) -> list[int]:
    return [made[name] for name in reads(graph.nodes[place]) if name in made][::-1]


def _called(node: Node) -> str:
    return f"{node.domain}::{node.op}" if node.domain else node.op


def mean_uses(graph: Graph) -> float:
    """Return how often a value that a node makes is used on average, outputs of the graph included; 0.0 without nodes.

    More than 1 means that work is shared.
    """
    made = producers(graph)
    used = Counter(name for node in graph.nodes for name in reads(node) if name in made)
    used.update(info.name for info in graph.outputs if info.name in made)
    return used.total() / len(made) if made else 0.0


def lcs_difference(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return how many elements of both sequences lie outside a longest common subsequence of theirs."""
    return len(one) + len(other) - 2 * lcs_length(one, other)


def lcs_length(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the length of a longest common subsequence, in memory linear in the length of `other`.

    Row by row: a cell is one more than the cell diagonally before it where elements agree, else the greatest so far.
    """
    left, right = _numbers(one, other)
    row = np.zeros(len(right) + 1, np.int64)
    for word in left:
        reached = np.where(right == word, row[:-1] + 1, row[1:])
        row[1:] = np.maximum.accumulate(reached)
    return int(row[-1])


def edit_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the least number of insertions, deletions and replacements that make one sequence the other.

    Memory is linear in the length of `other`. Insertions along a row become a running minimum when each cell is taken
    relative to its position.
    """
    left, right = _numbers(one, other)
    places = np.arange(len(right) + 1)
    row = places.copy()
    for count, word in enumerate(left, 1):
        reached = np.empty_like(row)
        reached[0] = count
        reached[1:] = np.minimum(row[1:] + 1, row[:-1] + (right != word))
        row = np.minimum.accumulate(reached - places) + places
    return int(row[-1])


def _numbers(one: Sequence[Hashable], other: Sequence[Hashable]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    known: dict[Hashable, int] = {}
    left, right = [[known.setdefault(word, len(known)) for word in words] for words in (one, other)]
    return np.array(left, np.int64), np.array(right, np.int64)
