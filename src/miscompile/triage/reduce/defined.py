"""The check that a draft is well defined, because undefined behaviour from a reduction must never pass for a bug.

The check looks at concrete inner values, as far as they are known. Each operator's spec has its own
(`OpSpec.defined_on`).
"""

from dataclasses import dataclass
from functools import partial

from miscompile.core.tensor import Tensor
from miscompile.graph.model import Node
from miscompile.ops.registry import written
from miscompile.triage.reduce.capture import Capture
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.reduce.flattening import KnownValues, flattened, is_block


@dataclass(frozen=True, slots=True)
class Guard:
    """Decides whether a draft is well defined on all its feeds."""

    capture: Capture

    def __call__(self, draft: Draft) -> bool:
        """Return False when a node has undefined behaviour, in the main graph or in a body in some iteration."""
        if any(is_block(node) for node in draft.graph.nodes):
            return self._sound(draft) and all(map(self._sound, flattened(draft, self.capture)))
        return self._sound(draft)

    def _sound(self, draft: Draft) -> bool:
        rules = written()
        return all(
            rules[node.op].defined_on(node, partial(_operand, node, known))
            for known in self.capture(draft)
            for node in draft.graph.nodes
            if node.op in rules and not node.domain
        )


def _operand(node: Node, known: KnownValues, place: int) -> Tensor | None:
    return known.get(node.inputs[place]) if place < len(node.inputs) else None
