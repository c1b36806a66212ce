"""Fewer outputs."""

from collections.abc import Iterator
from dataclasses import dataclass

from miscompile.triage.reduce.draft import Draft


@dataclass(frozen=True, slots=True)
class FewerOutputs:
    """Keeps a single output, the last one first; then removes one at a time, for bugs that need several."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield the draft with one output, then without one."""
        outputs = draft.graph.outputs
        if len(outputs) < 2:
            return
        for info in reversed(outputs):
            yield draft.with_graph(outputs=(info,))
        if len(outputs) > 2:
            for info in outputs:
                yield draft.with_graph(outputs=tuple(other for other in outputs if other is not info))
