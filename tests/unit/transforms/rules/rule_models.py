"""Models from the sides of rules and from single terms, for tests that run them."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as runtime_errors

from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.transforms.rules.expressions import Bindings
from miscompile.transforms.rules.kinds import Symbol, TermType
from miscompile.transforms.rules.rule import TermPattern, Variable, symbol_of, type_of, variables
from miscompile.transforms.rules.terms import infer, opset_of
from miscompile.transforms.rules.translation.nodes import nodes_of


class Speller:
    """Collects the nodes of terms; `opset` is the one they are written for."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Node] = []
        self.constants: dict[str, Tensor] = {}
        self._numbers = itertools.count()

    def fresh(self, hint: str) -> str:
        return f"{hint}_{next(self._numbers)}"

    def term(self, symbol: Symbol, children: tuple[str, ...]) -> str:
        name = self.fresh("v")
        nodes, constants = nodes_of(symbol, children, {symbol.output: name}, self.opset, self.fresh)
        self.nodes.extend(nodes)
        self.constants.update(constants)
        return name

    def pattern(self, pattern: TermPattern, environment: Bindings) -> str:
        if isinstance(pattern, Variable):
            return pattern.name
        children = tuple(self.pattern(argument, environment) for argument in pattern.arguments)
        return self.term(symbol_of(pattern, environment), children)

    def model(self, inputs: Mapping[str, TermType], output: str, kind: TermType) -> Model:
        infos = tuple(ValueInfo(name, TensorType(*known)) for name, known in inputs.items())
        self.nodes.append(Node("Identity", (output,), ("result",)))
        result = (ValueInfo("result", TensorType(*kind)),)
        graph = Graph("g", infos, result, tuple(self.nodes), self.constants)
        return Model(graph, {"": self.opset}, (), 10)


def side_model(pattern: TermPattern, inputs: Mapping[str, TermType], environment: Bindings, opset: int) -> Model:
    """A model of one side of a rule. Raises RejectedDraft where `opset` cannot say it."""
    kind = type_of(pattern, environment)
    assert kind is not None
    speller = Speller(opset)
    return speller.model(inputs, speller.pattern(pattern, environment), kind)


def term_model(symbol: Symbol, types: tuple[TermType, ...], opset: int) -> Model:
    """A model of a single term."""
    kind = infer(symbol, types)
    assert kind is not None
    speller = Speller(opset)
    inputs = {f"x{place}": known for place, known in enumerate(types)}
    return speller.model(inputs, speller.term(symbol, tuple(inputs)), kind)


def first_opset(pattern: TermPattern, environment: Bindings) -> int:
    """The first opset in which every operator of a side takes its operands."""
    if isinstance(pattern, Variable):
        return 13
    types = tuple(found for found in (type_of(a, environment) for a in pattern.arguments) if found is not None)
    own = opset_of(symbol_of(pattern, environment), types)
    return max(own, *(first_opset(argument, environment) for argument in pattern.arguments), 13)


def operands(pattern: TermPattern, environment: Bindings) -> dict[str, TermType]:
    return {name: environment[name] for name in variables(pattern)}


def words(arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Feeds for a runtime: bfloat16 stays as numbers of ml_dtypes, as onnx's reference has it."""
    return {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}


def run_unoptimised(model: Model, feeds: Mapping[str, Array]) -> Array | None:
    """The result of ONNX Runtime without optimisation; None where it has no kernel."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(emit(model), options, providers=["CPUExecutionProvider"])
    except (runtime_errors.NotImplemented, runtime_errors.InvalidGraph):
        return None
    return np.asarray(session.run(None, words(feeds))[0])


__all__ = ["Speller", "first_opset", "operands", "run_unoptimised", "side_model", "tensor", "term_model", "words"]
