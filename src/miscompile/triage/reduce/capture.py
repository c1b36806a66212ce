"""Captured values: the inner values of a draft, from a reference run in which all of them are outputs."""

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
from miscompile.graph.emit import to_program
from miscompile.graph.model import Node, TensorType, ValueInfo
from miscompile.graph.typing import value_types
from miscompile.transforms.catalogue import alters
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.validity import VOTER

_HALVINGS = 3
_KEPT = 16

Captured = tuple[Mapping[str, Tensor], ...]
"""For each feed, the known values by name: inputs, initialisers, and the inner ones that could be captured."""


class Capture(Protocol):
    """Gives reductions the inner values of a draft."""

    def __call__(self, draft: Draft) -> Captured:
        """Return the known values, for each feed of `draft`."""
        ...


class ReferenceCapture:
    """Captures on one build of one target.

    If the whole graph does not run there (it crashes that build too), the `voter`, a runner of onnx's reference
    implementation, runs it; else the front half is tried, then the front quarter, and so on, because a front cut needs
    the values before a crash, and these values decide whether the error is legitimate.
    """

    def __init__(self, runner: Runner, target: str, build: Build, voter: Runner | None = None) -> None:
        self._runner, self._target, self._voter = runner, target, voter
        self._build = replace(build, observe=False, transform=None if alters(build.transform) else build.transform)
        self._known: OrderedDict[str, Captured] = OrderedDict()

    def __call__(self, draft: Draft) -> Captured:
        """Return the known values, for each feed of `draft`; caches the last few drafts."""
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
            seen = self._run(self._runner, draft, front, self._target, self._build) if front else None
            if seen is None and not step and nodes and self._voter is not None:
                seen = self._run(self._voter, draft, nodes, VOTER, Build("off"))
            if seen is not None:
                return tuple({**known, **more} for known, more in zip(given, seen, strict=True))
        return given

    @staticmethod
    def _run(
        runner: Runner, draft: Draft, nodes: Sequence[Node], target: str, build: Build
    ) -> list[dict[str, Tensor]] | None:
        try:
            types = value_types(draft.model)
            names = [name for node in nodes for name in node.outputs if isinstance(types.get(name), TensorType)]
            outputs = tuple(ValueInfo(name, types[name]) for name in names)
            program = to_program(draft.with_graph(nodes=tuple(nodes), outputs=outputs).model)
        except MiscompileError:
            return None  # not expressible as a case; the reduction goes on without captured values
        feeds = tuple(tuple(feed[port.name] for port in program.inputs) for feed in draft.feeds)
        outcome = runner.run([Run(Case(program, feeds), target, build, "reduce")])[0]
        if not isinstance(outcome, Values):
            return None
        return [
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
            for row in outcome.results
        ]
