"""Drawing one call of a spec on a fresh site, with every claim that the spec makes about it.

A draw depends on its arguments alone, so that a failed check can be replayed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from miscompile.base.errors import ModelError
from miscompile.base.rng import stream
from miscompile.core.tensor import Tensor
from miscompile.graph.infer import infer
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.ops.facts import Facts, settle
from miscompile.ops.shapes import promised_shapes
from miscompile.ops.site import FreshSite
from miscompile.ops.spec import Call, OperatorLimits, OpSpec
from miscompile.ops.values import Style

_LIMITS = OperatorLimits(max_dim=4, max_elements=256, zero_size=0.04)
_SPANS = (3.0, 3.0, 40.0, 700.0)
"""Largest magnitudes of drawn floats: inner values of a graph exceed those of inputs, and guards must hold for them."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One call with the claims about it: values by operand name, output types and settled facts."""

    call: Call
    opset: int
    values: Mapping[str, Tensor]
    inputs: frozenset[str]
    types: tuple[TensorType, ...]
    facts: tuple[Facts, ...]

    def model(self) -> Model:
        """Return the one-operator model; operands that are no graph inputs become initialisers."""
        operands = {operand.name: operand for operand in self.call.inputs if operand is not None}
        graph = Graph(
            "call",
            tuple(ValueInfo(x.name, TensorType(x.dtype, x.shape)) for x in operands.values() if x.name in self.inputs),
            tuple(ValueInfo(f"y{place}", kind) for place, kind in enumerate(self.types)),
            (_node(self.call),),
            {name: self.values[name] for name in operands if name not in self.inputs},
        )
        opsets = {"": self.opset} | ({self.call.domain: 1} if self.call.domain else {})
        return Model(graph, opsets)


def draw_call(spec: OpSpec, dtype: str, opset: int, *, seed: int, index: int) -> Draw:
    """Draw call number `index` of a check, types and facts included. The same arguments give the same draw.

    Raises RejectedDraft as the sampler does, and AssertionError when the call breaks the operator's rules.
    """
    rng = stream(seed, "conformance", spec.op, dtype, opset, index)
    style = Style(rng.random() < 0.5, rng.random() < 0.4, rng.choice(_SPANS))
    site = FreshSite(rng, dtype, opset, _LIMITS, style)
    call = spec.sample(site)
    demand((call.op, call.domain) == (spec.op, spec.domain), f"the sampler made a call of {call.op}")
    if spec.main >= 0:
        main = call.operand(spec.main)
        demand(main.dtype == dtype, f"input {spec.main} has type {main.dtype}")
    demand(spec.defined(call), f"the guard refuses a sampled call: {describe(call)}")
    types = output_types(call, opset, site.values)
    _check_shapes(spec, call, types)
    bounds = spec.bounds(call, types)
    demand(len(bounds) == call.outputs, f"{len(bounds)} bounds for {call.outputs} outputs")
    known = tuple(operand.facts for operand in call.inputs if operand is not None)
    facts = tuple(
        settle(kind.dtype, bound, spec.exactness_of(call), known) for kind, bound in zip(types, bounds, strict=True)
    )
    inputs = frozenset(name for name, role in site.roles.items() if role != "constant")
    return Draw(call, opset, site.values, inputs, types, facts)


def _check_shapes(spec: OpSpec, call: Call, types: tuple[TensorType, ...]) -> None:
    """Compare the output shapes that the spec promises with the inferred ones."""
    claimed = promised_shapes(spec, call)
    if claimed is not None:
        kept = claimed == tuple(kind.shape for kind in types)
        demand(kept, f"the spec promises outputs of shapes {claimed}, inference gives {types}: {describe(call)}")


def output_types(call: Call, opset: int, values: Mapping[str, Tensor]) -> tuple[TensorType, ...]:
    """Infer the output types; known elements of operands are passed to inference. Raises AssertionError."""
    operands = [operand for operand in call.inputs if operand is not None]
    known = {operand.name: values[operand.name] for operand in operands if operand.value is not None}
    try:
        found = infer(_node(call), {x.name: TensorType(x.dtype, x.shape) for x in operands}, opset, known)
    except ModelError as error:
        raise AssertionError(f"the call breaks its operator's rules: {error} {describe(call)}") from None
    types = tuple(kind for kind in found if isinstance(kind, TensorType))
    demand(len(types) == call.outputs, f"inference gives {found} for {call.outputs} outputs of {describe(call)}")
    return types


def _node(call: Call) -> Node:
    inputs = tuple("" if operand is None else operand.name for operand in call.inputs)
    return Node(call.op, inputs, tuple(f"y{place}" for place in range(call.outputs)), call.attributes, call.domain)


def demand(held: object, message: str) -> None:
    """Raise AssertionError with `message` unless `held` is true; unlike an assert statement, it works under `python
    -O`.
    """
    if not held:
        raise AssertionError(message)


def describe(call: Call) -> str:
    """Return the call as a line: operands with type, shape and range, and attributes."""
    operands = ", ".join(
        "-" if x is None else f"{x.dtype}{list(x.shape)} in [{x.facts.lo:g}, {x.facts.hi:g}]" for x in call.inputs
    )
    return f"{call.op}({operands}) { ({name: attribute.value for name, attribute in call.attributes.items()}) }"
