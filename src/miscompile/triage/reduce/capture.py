"""Captured values: what flows through a draft, seen on a reference run with everything exposed."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from miscompile.base.errors import MiscompileError
from miscompile.core.case import Case
from miscompile.core.outcome import Values
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Node, TensorType, ValueInfo
from miscompile.graph.program import to_program
from miscompile.graph.typing import value_types
from miscompile.triage.reduce.draft import Draft

_HALVINGS = 3
_KEPT = 16

Captured = tuple[Mapping[str, Tensor], ...]
"""For each feed, the values known by name: inputs, initialisers, and those inner ones that could be seen."""


class Capture(Protocol):
    """Gives reductions the values that flow through a draft."""

    def __call__(self, draft: Draft) -> Captured:
        """Return the known values, for each feed of `draft`."""
        ...


class ReferenceCapture:
    """Captures on one build of one target.

    If the whole graph does not run there (it crashes that build too), the front half is tried, then the front
    quarter, and so on: the part in front of a crash is what a front cut wants to know.
    """

    def __init__(self, runner: Runner, target: str, build: Build) -> None:
        self._runner, self._target = runner, target
        self._build = replace(build, observe=False)
        self._known: OrderedDict[str, Captured] = OrderedDict()

    def __call__(self, draft: Draft) -> Captured:
        """Return the known values, for each feed of `draft`; remembers the last few drafts."""
        key = draft.digest
        if key not in self._known:
            self._known[key] = self._capture(draft)
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return self._known[key]

    def _capture(self, draft: Draft) -> Captured:
        given = tuple({**draft.graph.initializers, **feed} for feed in draft.feeds)
        nodes = draft.graph.nodes
        for step in range(_HALVINGS + 1):
            front = nodes[: len(nodes) >> step]
            seen = self._run(draft, front) if front else None
            if seen is not None:
                return tuple({**known, **more} for known, more in zip(given, seen, strict=True))
        return given

    def _run(self, draft: Draft, nodes: Sequence[Node]) -> list[dict[str, Tensor]] | None:
        try:
            types = value_types(draft.model)
            names = [name for node in nodes for name in node.outputs if isinstance(types.get(name), TensorType)]
            outputs = tuple(ValueInfo(name, types[name]) for name in names)
            program = to_program(draft.with_graph(nodes=tuple(nodes), outputs=outputs).model)
        except MiscompileError:
            return None  # not expressible as a case; the reduction goes on without captured values
        feeds = tuple(tuple(feed[port.name] for port in program.inputs) for feed in draft.feeds)
        outcome = self._runner.run([Run(Case(program, feeds), self._target, self._build, "reduce")])[0]
        if not isinstance(outcome, Values):
            return None
        return [
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
            for row in outcome.results
        ]
