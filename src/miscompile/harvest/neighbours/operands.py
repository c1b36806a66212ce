"""Steps on operands: constants where a test feeds a tensor, fed where it has a constant, and one tensor twice."""

from collections.abc import Iterator

from miscompile.harvest.neighbours.call import OPERANDS, StepView, Variation
from miscompile.instances.wording import POLICY_WORDS


def operands(scene: StepView) -> Iterator[Variation]:
    """Yield the instance with other operands fed; those with the first as a constant are for nodes only."""
    now = scene.values.get(OPERANDS)
    several = len(scene.tensors()) > 1
    for policy, words in POLICY_WORDS.items():
        if policy == now or (policy in ("first constant", "constant") and not scene.subject.node):
            continue
        if several or policy in ("fed", "constant"):
            yield Variation({OPERANDS: policy}, words)


def aliases(scene: StepView) -> Iterator[Variation]:
    """Yield the instance with the same tensor for two operands of a node."""
    found = list(scene.data().items()) if scene.subject.node else []
    for place, (name, value) in enumerate(found):
        for first, other in found[:place]:
            if (other.dtype, other.shape) == (value.dtype, value.shape):
                yield Variation({name: scene.values[first], OPERANDS: "shared"}, f"{name} the same tensor as {first}")
