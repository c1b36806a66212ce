"""Strategies for Hypothesis (https://hypothesis.readthedocs.io): property tests of anything that takes ONNX models.

    from hypothesis import given
    from miscompile.strategies import models

    @given(models())
    def test_my_importer(model): ...

Hypothesis is no dependency of the package: this module needs it installed.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import onnx
from hypothesis import strategies as st

from miscompile.base.rng import stream
from miscompile.graph.edges import reads
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.graph.typing import value_types
from miscompile.ops.support import Support
from miscompile.producers.options import OPSETS, GeneratorOptions
from miscompile.producers.strict import Strict

MOST_NODES = 8


def models(
    *,
    max_nodes: int = MOST_NODES,
    ops: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    opsets: Sequence[int] = (),
    max_rank: int = 3,
    max_dim: int = 4,
) -> st.SearchStrategy[onnx.ModelProto]:
    """Return a strategy that draws valid ONNX models of up to about `max_nodes` operators.

    `ops`, `dtypes` (as in `float32`) and `opsets` restrict the models; empty ones do not, except that operator sets
    newer than the installed onnx are left out. Ranks and sizes of tensors are at most `max_rank` and `max_dim`.

    A model is a window of consecutive operators of a graph that the tool's generator makes from a seed. Hypothesis
    draws the seed and the window, and shrinks the window, to a single operator if that is enough: what an operator
    outside computed becomes an input. So Hypothesis can replay, store and mix examples. The tool's reducer is not used,
    because it would run the test behind Hypothesis's back, and its results would be no examples that Hypothesis knows;
    drawing each choice of the generator from Hypothesis was tried, and took minutes to shrink a graph by half. For
    smaller shapes and attributes give the model to `miscompile check`, whose findings the reducer cuts.

    Raises UsageError at the first example when the restrictions leave no operator.
    """
    newest = onnx.defs.onnx_opset_version()
    options = GeneratorOptions(
        nodes=max_nodes, spread=0.0, ops=tuple(ops), dtypes=tuple(dtypes),
        opsets=tuple(opsets) or tuple(opset for opset in OPSETS if opset <= newest),
        max_rank=max_rank, max_dim=max_dim, max_elements=256, guidance="off", variants=1,
    )  # fmt: skip
    return _windows(options)


@st.composite
def _windows(draw: st.DrawFn, options: GeneratorOptions) -> onnx.ModelProto:
    model = _generated(options, draw(st.integers(0, 2**32 - 1)))
    total = len(model.graph.nodes)
    count = draw(st.integers(1, total))
    first = draw(st.integers(0, total - count))
    return onnx.load_from_string(to_program(_window(model, first, first + count)).payload)


def _window(model: Model, first: int, last: int) -> Model:
    """Return the operators `first` to `last - 1`; the model as it is when a value on their edge is no known tensor."""
    graph, types = model.graph, value_types(model, strict=False)
    nodes = graph.nodes[first:last]
    made = {name for node in nodes for name in node.outputs if name}
    wanted = list(dict.fromkeys(name for node in nodes for name in reads(node) if name not in made))
    kept = {name: graph.initializers[name] for name in wanted if name in graph.initializers}
    ends = [name for name in wanted if name not in kept]
    used = {name for node in nodes for name in reads(node)}
    results = [name for name in made if name not in used] or sorted(made)
    tensors = all(isinstance(types.get(name), TensorType) for name in (*ends, *results))
    if len(nodes) == len(graph.nodes) or not tensors:
        return model
    inputs = tuple(ValueInfo(name, types[name]) for name in ends)
    outputs = tuple(ValueInfo(name, types[name]) for name in sorted(results))
    return replace(model, graph=Graph(graph.name, inputs, outputs, nodes, kept))


@lru_cache(maxsize=64)
def _generated(options: GeneratorOptions, seed: int) -> Model:
    """Return the graph of a seed; cached, because shrinking cuts windows of one graph."""
    # A producer remembers what it has made, and an example must not depend on others, so each has its own.
    return read(Strict(options, _open()).propose(stream(seed, "strategy")).program.payload)


@lru_cache(maxsize=1)
def _open() -> Support:
    """Return the table that admits every call; it is shared because it caches."""
    return Support(open=True)
