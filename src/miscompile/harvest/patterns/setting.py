"""Block or subgraph: does a pass need the whole unit, or does it match the pattern inside a larger program?

A block is a contiguous region (OATest, section 3.1): its operators are connected by values that they compute, and
the pass matches them inside a larger program as well. This module checks both; for the second it adds operators
before every input and after every output.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import MiscompileError
from miscompile.core.case import Case
from miscompile.core.examination import examine
from miscompile.core.ports import Runner
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Violated
from miscompile.graph.check import check
from miscompile.graph.edges import reads
from miscompile.graph.emit import to_program
from miscompile.graph.model import Model, Node, TensorType, ValueInfo
from miscompile.graph.rename import redirect
from miscompile.harvest.patterns.shrink import Fires
from miscompile.ops.seed import Seed
from miscompile.patterns.pattern import Granularity
from miscompile.triage.reduce.draft import Draft, take_apart

_TAG = "setting_"


def granularity_of(seed: Seed, case: Case, fires: Fires, runner: Runner) -> Granularity:
    """Return the granularity of the pass, given the pattern `seed` and the program `case` from which the pattern was
    made."""
    if not contiguous(seed.graph.nodes):
        return "subgraph"
    inside = embedded(take_apart(case), seed)
    return "block" if inside is None or _is_seen(inside, fires, runner) else "subgraph"


def contiguous(nodes: Sequence[Node]) -> bool:
    """Tell whether the nodes are connected by values that they produce."""
    if not nodes:
        return False
    made = {name: place for place, node in enumerate(nodes) for name in node.outputs if name}
    root = list(range(len(nodes)))

    def find(place: int) -> int:
        while root[place] != place:
            place = root[place]
        return place

    for place, node in enumerate(nodes):
        for name in reads(node):
            if name in made:
                root[find(place)] = find(made[name])
    return len({find(place) for place in range(len(nodes))}) == 1


def embedded(draft: Draft, seed: Seed) -> Case | None:
    """Return the program with an operator before each hole and after each output; None if the result is not valid.

    The operators change no value: they subtract an input that is zero in this feed.
    """
    graph, feed = draft.graph, dict(draft.feeds[0])
    before, after, inputs = [], [], list(graph.inputs)
    names: dict[str, str] = {}
    for info in seed.graph.inputs:
        if info.name not in seed.pinned and isinstance(info.type, TensorType):
            names[info.name] = f"{_TAG}{info.name}_in"
            before.append(_operator(info.type, info.name, names[info.name], inputs, feed))
    outputs = []
    for info in seed.graph.outputs:
        assert isinstance(info.type, TensorType)
        result = f"{_TAG}{info.name}_out"
        after.append(_operator(info.type, names.get(info.name, info.name), result, inputs, feed))
        outputs.append(ValueInfo(result, info.type))
    nodes = (*before, *(redirect(node, names) for node in graph.nodes), *after)
    model = replace(
        draft.model, graph=replace(graph, nodes=nodes, inputs=tuple(inputs), outputs=tuple(outputs), types={})
    )
    return _case(model, feed)


def _operator(kind: TensorType, name: str, result: str, inputs: list[ValueInfo], feed: dict[str, Tensor]) -> Node:
    """Return the operator that computes `result` from `name`; its second operand is added to `inputs` and `feed`."""
    other = f"{result}_zero"
    shape = tuple(int(size) for size in kind.shape or () if isinstance(size, int))
    inputs.append(ValueInfo(other, kind))
    feed[other] = Tensor(kind.dtype, np.zeros(shape, DTYPES[kind.dtype].storage))
    return Node("Xor" if kind.dtype == "bool" else "Sub", (name, other), (result,))


def _case(model: Model, feed: dict[str, Tensor]) -> Case | None:
    try:
        check(model)
        program = to_program(model)
    except MiscompileError:
        return None  # the operators do not accept such elements in this opset
    return Case(program, (tuple(feed[port.name] for port in program.inputs),))


def _is_seen(case: Case, fires: Fires, runner: Runner) -> bool:
    return isinstance(examine(case, fires, runner, random.Random(0)).verdict, Violated)
