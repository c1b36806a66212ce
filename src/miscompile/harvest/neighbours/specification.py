"""The step to calls that an operator's specification in this tool draws (`ops/`): all parameters are others at once.

Tests use few of the combinations that an operator's page allows. The sweep draws such combinations for compilers; here
the library judges them first, as it does any neighbour.
"""

import random
from collections.abc import Iterator

from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.graph.read import read
from miscompile.harvest.neighbours.call import StepView, Variation, parameters_of
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held, Value
from miscompile.ops.registry import dtypes_of, specs
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.producers.instances.onnx_model import node_instance
from miscompile.producers.sweep import Single, draft_single

WORDS = "all parameters drawn from the operator's specification"
"""How such a neighbour differs from a test's instance."""

_DRAWS = 12
"""Calls that are drawn beside an instance."""

_LIMITS = OperatorLimits(5, 8, 512, zero_size=0.05)
_EVERYTHING = Support(open=True)


def specification(scene: StepView) -> Iterator[Variation]:
    """Yield calls of a node's operator with other parameters; none for operators without a specification."""
    operation, rng = scene.subject.operation, scene.draw
    if not scene.subject.node or operation.api not in specs():
        return
    dtypes = sorted(dtypes_of(operation.api, operation.version))
    for _ in range(_DRAWS if dtypes else 0):
        drawn = _drawn(rng, operation.api, rng.choice(dtypes), operation.version)
        values = None if drawn is None else parameters_of(scene.subject, drawn)
        if values is not None:
            yield Variation({**dict.fromkeys(scene.values), **values}, WORDS)


def _drawn(rng: random.Random, op: str, dtype: str, version: int) -> Instance | None:
    """Draw a call as an instance; None where the operator's sampler rejects the draft."""
    style = Style(rng.random() < 0.5, rng.random() < 0.1)
    try:
        return _instance(draft_single(rng, op, dtype, version, _LIMITS, style, _EVERYTHING), version)
    except (RejectedDraft, ModelError):
        return None


def _instance(single: Single, version: int) -> Instance | None:
    case = single.case("specification")
    model = read(case.program.payload)
    (node, *others) = [one for one in model.graph.nodes if one.op != "Constant"]
    if others:
        return None
    held = dict(model.graph.initializers)
    for one in model.graph.nodes:
        if one is not node and "value" in one.attributes:
            held[one.outputs[0]] = one.attributes["value"].value
    held |= {port.name: value for port, value in zip(case.program.inputs, case.feeds[0], strict=True)}
    if not held.keys() >= set(filter(None, node.inputs)):
        return None
    operands: dict[str, Value] = {name: Held(value) for name, value in held.items()}
    return node_instance(node, operands, version)
