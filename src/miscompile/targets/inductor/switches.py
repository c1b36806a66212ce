"""Hooks in Inductor that observe passes, besides those of `sightings.py`; those that switch are in `switch_runner.py`.

Inductor has no interface for that, so methods of its classes are wrapped. The hooks are independent: if a version
lacks what one hook needs, only the passes of that hook cannot be observed or switched off.
"""

import contextlib
import functools
import importlib
from dataclasses import dataclass, field
from typing import Any

from miscompile.targets.inductor.about import GRAPH_PASSES
from miscompile.targets.inductor.sightings import SIGHTINGS
from miscompile.targets.inductor.switch_runner import (
    SWITCHED_OFF,
    PatternCheck,
    replace_method,
    switch_graph_passes,
    switch_patterns,
    switch_vectors,
)

_ENTRIES = ("GraphPatternEntry", "LoweringPatternEntry", "ReplacementPatternEntry")


@dataclass(slots=True)
class Switchboard:
    """The observed passes."""

    observing: bool = False
    seen: dict[str, None] = field(default_factory=dict)

    def note(self, name: str) -> None:
        """Record that a pass has changed the program."""
        if self.observing:
            self.seen[name] = None


def install(board: Switchboard) -> None:
    """Install the hooks, for the rest of the process."""
    for switch in (switch_graph_passes, switch_patterns):
        with contextlib.suppress(*_DIFFERENT):
            switch()
    for hook in (*SIGHTINGS, _hook_graph_passes, _hook_patterns, _hook_fusion, _hook_vectors, _hook_buffers):
        with contextlib.suppress(*_DIFFERENT):
            hook(board)


_DIFFERENT = (ImportError, AttributeError, TypeError)
"""Exceptions of hooks in versions that lack what they need."""


def _hook_graph_passes(board: Switchboard) -> None:
    """Hook the observer in which FX passes run."""
    observer = importlib.import_module("torch.fx.passes.graph_transform_observer").GraphTransformObserver
    known, before = frozenset(GRAPH_PASSES), dict[int, str]()

    def enter(original: Any, self: Any) -> Any:  # noqa: ANN401
        if board.observing and self.passname in known:
            before[id(self)] = str(self.gm.graph)
        return original(self)

    def leave(original: Any, self: Any, *error: Any) -> Any:  # noqa: ANN401
        if before.pop(id(self), None) not in (None, str(self.gm.graph)):
            board.note(self.passname)
        return original(self, *error)

    replace_method(observer, "__enter__", enter)
    replace_method(observer, "__exit__", leave)


def _hook_patterns(board: Switchboard) -> None:
    """Hook the method that applies a pattern."""
    matcher = importlib.import_module("torch._inductor.pattern_matcher")
    for kind in _ENTRIES:
        replace_method(getattr(matcher, kind), "apply", functools.partial(_apply, board))


def _apply(board: Switchboard, original: Any, self: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
    check = self.extra_check
    if isinstance(check, PatternCheck):
        board.note(check.name)
    return original(self, *args, **words)


def _hook_fusion(board: Switchboard) -> None:
    scheduler = importlib.import_module("torch._inductor.scheduler").Scheduler

    def fuse(original: Any, self: Any, nodes: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        fused = original(self, nodes, *args, **words)
        if len(fused) < len(nodes) and "scheduler_fusion" not in SWITCHED_OFF:
            board.note("scheduler_fusion")
        return fused

    replace_method(scheduler, "fuse_nodes_once", fuse)


def _hook_vectors(board: Switchboard) -> None:
    """Hook the heuristic that selects the axes to tile, around its switch."""
    switch_vectors()
    tiling = importlib.import_module("torch._inductor.codegen.cpp").TilingSelect

    def select(original: Any, self: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        factors, axes, *rest = original(self, *args, **words)
        if axes:
            board.note("vectorization")
        return (factors, axes, *rest)

    replace_method(tiling, "select_tiling", select)


def _hook_buffers(board: Switchboard) -> None:
    wrapper = importlib.import_module("torch._inductor.codegen.wrapper").PythonWrapperCodegen

    def reuse(original: Any, self: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        if "buffer_reuse" not in SWITCHED_OFF:
            board.note("buffer_reuse")
        return original(self, *args, **words)

    def inplace(original: Any, self: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        board.note("inplace_buffers")
        return original(self, *args, **words)

    replace_method(wrapper, "make_buffer_reuse", reuse)
    replace_method(wrapper, "codegen_inplace_reuse", inplace)
