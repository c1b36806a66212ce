"""Interval analysis of an arbitrary model: the facts of every value, computed from the fed tensors.

It tells which outputs are exact. The generator knows this for its own graphs; reduction and `check` need it for models
from elsewhere. `analysis_bodies` interprets the bodies of If, Loop and Scan on intervals, iteration by iteration.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.core.case import Feed, Port, Program
from miscompile.core.tensor import Tensor
from miscompile.graph.constant_nodes import constant_of
from miscompile.graph.emit import to_program
from miscompile.graph.infer import infer
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueType
from miscompile.graph.specialise import folded, is_symbolic, specialised
from miscompile.graph.structural import STRUCTURAL_SIZE
from miscompile.ops.analysis_bodies import Operands, block, ends_by_itself, scanned_count
from miscompile.ops.facts import Facts, measure, settle
from miscompile.ops.registry import specs, well_formed
from miscompile.ops.spec import Call, Operand

_UNKNOWN = Facts(-math.inf, math.inf)

Visit = Callable[[Node, Operands, Operands], None]
"""Called for every node of a body on every iteration, with the operands in scope and the results of the node."""


def exact_outputs(model: Model, feed: Mapping[str, Tensor]) -> frozenset[str]:
    """Return the names of the outputs of `model` on which every correct implementation agrees bit for bit.

    `feed` holds the inputs by name. Operators without a spec and local functions make their results inexact.
    """
    operands = analyse(model, feed)
    return frozenset(
        info.name for info in model.graph.outputs if info.name in operands and operands[info.name].facts.exact
    )


def reprogram(model: Model, feed: Feed) -> Program:
    """Return `model` as a program whose exact outputs are worked out anew from `feed`.

    Where sizes are symbolic, the model is analysed at the feed's sizes and keeps its symbols. Raises RejectedDraft when
    an edit has made a node that breaks its operator's rules.
    """
    program = to_program(model)
    names = [port.name for port in program.inputs]
    shapes = {name: value.shape for name, value in zip(names, feed, strict=True)}
    symbolic = is_symbolic(program.inputs)
    concrete = folded(specialised(model, shapes)) if symbolic else model
    operands = analyse(concrete, dict(zip(names, feed, strict=True)))
    require_well_formed(concrete, operands)
    outputs = [
        port._replace(exact=port.name in operands and operands[port.name].facts.exact) for port in program.outputs
    ]
    if not symbolic:
        outputs = [_sized(port, operands.get(port.name)) for port in outputs]
    return replace(program, outputs=tuple(outputs))


def _sized(port: Port, known: Operand | None) -> Port:
    """Fill in the sizes that follow from what is fed, which inference on the graph alone does not see."""
    return port if known is None or known.dtype != port.dtype else port._replace(shape=known.shape)


def require_well_formed(model: Model, operands: Operands) -> None:
    """Raise RejectedDraft when a node, in a body too, breaks a rule of its operator's page that onnx does not check.

    `operands` come from `analyse`. Nodes with an operand that is not in it are not checked, nor are nodes of other
    domains and the bodies of loops with no iteration.
    """
    flow = _Flow(model, _require, thorough=True)
    for node in model.graph.nodes:
        _require(node, operands, {})
        if any(True for _ in node.subgraphs()):
            flow.node(node, operands)


def analyse(model: Model, feed: Mapping[str, Tensor], visit: Visit | None = None) -> dict[str, Operand]:
    """Return an operand with facts for every value of the main graph whose type can be inferred.

    `visit` is called for the nodes of bodies.
    """
    return _analyse(model, feed, visit or _ignore)


def every_value(model: Model, feed: Mapping[str, Tensor]) -> list[Operand] | None:
    """Return an operand for every value, and for those in bodies one per iteration; None when a type is unknown.

    Branches whose condition is known to exclude them are left out.
    """
    found: list[Operand] = []
    missing = False

    def visit(node: Node, operands: Operands, made: Operands) -> None:
        nonlocal missing
        del operands
        found.extend(made.values())
        missing = missing or any(name and name not in made for name in node.outputs)

    operands = _analyse(model, feed, visit)
    if missing or any(name and name not in operands for node in model.graph.nodes for name in node.outputs):
        return None
    return [*operands.values(), *found]


def _analyse(model: Model, feed: Mapping[str, Tensor], visit: Visit) -> dict[str, Operand]:
    operands = {name: _known(name, value) for name, value in [*model.graph.initializers.items(), *feed.items()]}
    flow = _Flow(model, visit)
    for node in model.graph.nodes:
        operands.update(flow.node(node, operands))
    return operands


@dataclass(frozen=True, slots=True)
class _Flow:
    """Interprets nodes and bodies on facts."""

    model: Model
    visit: Visit
    thorough: bool = False

    def node(self, node: Node, operands: Operands) -> dict[str, Operand]:
        """Return the results of `node` whose types can be inferred."""
        value = constant_of(node)
        if value is not None:
            return {node.outputs[0]: _known(node.outputs[0], value)}
        if any(name and name not in operands for name in node.inputs) or self._local(node):
            return {}
        if node.op == "Identity" and not node.domain and operands[node.inputs[0]].value is not None:
            return {node.outputs[0]: operands[node.inputs[0]]._replace(name=node.outputs[0])}
        if any(True for _ in node.subgraphs()):
            results = block(node, operands, self.body, thorough=self.thorough)
            return {x.name: x for x in results if x is not None and x.name}
        return _results(node, operands, self.model.opset)

    def body(self, graph: Graph, outer: Operands, given: Sequence[Operand]) -> list[Operand | None]:
        """Return the outputs of the body `graph` for the inputs `given`; None where nothing is known."""
        operands = {**outer, **{name: _known(name, value) for name, value in graph.initializers.items()}}
        operands.update((info.name, x._replace(name=info.name)) for info, x in zip(graph.inputs, given, strict=False))
        for node in graph.nodes:
            made = self.node(node, operands)
            self.visit(node, operands, made)
            for name in node.outputs:
                operands.pop(name, None)  # from here on the name means the new value, not the outer one
            operands.update(made)
        return [operands.get(info.name) for info in graph.outputs]

    def _local(self, node: Node) -> bool:
        return any((function.domain, function.name) == (node.domain, node.op) for function in self.model.functions)


def _ignore(node: Node, operands: Operands, made: Operands) -> None:
    del node, operands, made


def _require(node: Node, operands: Operands, made: Operands) -> None:
    del made
    if node.op == "Scan" and not node.domain and not scanned_count(node):
        raise RejectedDraft("Scan breaks a rule of its operator")
    if node.op == "Loop" and not node.domain and ends_by_itself(node, operands):
        raise RejectedDraft("Loop has no first condition, and one of its body")
    if node.domain or any(name and name not in operands for name in node.inputs):
        return
    inputs = tuple(operands[name] if name else None for name in node.inputs)
    try:
        fine = well_formed(Call(node.op, inputs, node.attributes, len(node.outputs)))
    except (AssertionError, IndexError):
        return  # an operand is missing: the checker reports that
    if not fine:
        raise RejectedDraft(f"{node.op} breaks a rule of its operator")


def _known(name: str, value: Tensor) -> Operand:
    return Operand(name, value.dtype, value.shape, measure(value), value.array)


def _results(node: Node, operands: Operands, opset: int) -> dict[str, Operand]:
    inputs = tuple(operands[name] if name else None for name in node.inputs)
    present = [operand for operand in inputs if operand is not None]
    types: dict[str, ValueType] = {
        name: TensorType(operands[name].dtype, operands[name].shape) for name in node.inputs if name
    }
    known = {
        name: Tensor(operand.dtype, operand.value)
        for name, operand in zip(filter(None, node.inputs), present, strict=True)
        if operand.value is not None and operand.value.size <= STRUCTURAL_SIZE
    }
    try:
        kinds = infer(node, types, opset, known)
    except ModelError:
        return {}
    sized = [kind if isinstance(kind, TensorType) and kind.static else None for kind in kinds]
    if None in sized:
        return {}
    results = tuple(kind for kind in sized if kind is not None)
    facts = _facts(Call(node.op, inputs, node.attributes, len(results), node.domain), results)
    return {
        name: Operand(name, kind.dtype, kind.shape, fact)  # type: ignore[arg-type]
        for name, kind, fact in zip(node.outputs, results, facts, strict=True)
        if name
    }


def _facts(call: Call, types: tuple[TensorType, ...]) -> tuple[Facts, ...]:
    spec = specs().get(call.op)
    unknown = tuple(_UNKNOWN for _ in types)
    if spec is None or call.domain or any(attribute.kind == "ref" for attribute in call.attributes.values()):
        return unknown
    inputs = tuple(operand.facts for operand in call.inputs if operand is not None)
    try:
        if not spec.defined(call):
            return unknown
        return tuple(
            settle(kind.dtype, bound, spec.exactness_of(call), inputs)
            for kind, bound in zip(types, spec.bounds(call, types), strict=True)
        )
    except (RejectedDraft, ArithmeticError, ValueError, AssertionError, IndexError):
        return unknown  # the model is not one that the sampler would have made, so nothing is claimed of it
