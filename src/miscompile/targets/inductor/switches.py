"""Hooks in Inductor that observe passes and switch them off.

Inductor has no interface for that, so methods of its classes are wrapped. The hooks are independent: if a version
lacks what one hook needs, only the passes of that hook cannot be observed or switched off.
"""

import contextlib
import functools
import gc
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from miscompile.targets.inductor.about import GRAPH_PASSES
from miscompile.targets.inductor.sightings import SIGHTINGS, wrap

OFF = {"nopasses": frozenset({"vectorization"})}
"""Further settings that levels switch off."""

_ENTRIES = ("GraphPatternEntry", "LoweringPatternEntry", "ReplacementPatternEntry")
_ATTENTION = re.compile(r"^_?sfdp_pattern_")
_GENERIC = re.compile(r"_register_(\w+?)_lowering\.")


@dataclass(slots=True)
class Switchboard:
    """The passes that are off in the current build, and the observed passes."""

    off: frozenset[str] = frozenset()
    observing: bool = False
    seen: dict[str, None] = field(default_factory=dict)

    def note(self, name: str) -> None:
        """Record that a pass has changed the program."""
        if self.observing:
            self.seen[name] = None


def install(board: Switchboard) -> None:
    """Install the hooks, for the rest of the process."""
    for hook in (*SIGHTINGS, _hook_graph_passes, _hook_patterns, _hook_fusion, _hook_vectors, _hook_buffers):
        with contextlib.suppress(ImportError, AttributeError, TypeError):  # versions that differ here
            hook(board)


def _hook_graph_passes(board: Switchboard) -> None:
    """Hook the observer in which FX passes run, which has their names and can skip them."""
    observer = importlib.import_module("torch.fx.passes.graph_transform_observer").GraphTransformObserver
    known, before = frozenset(GRAPH_PASSES), dict[int, str]()

    def refuse(original: Any, self: Any) -> Any:  # noqa: ANN401
        return self.passname in board.off or original(self)

    def enter(original: Any, self: Any) -> Any:  # noqa: ANN401
        if board.observing and self.passname in known:
            before[id(self)] = str(self.gm.graph)
        return original(self)

    def leave(original: Any, self: Any, *error: Any) -> Any:  # noqa: ANN401
        if before.pop(id(self), None) not in (None, str(self.gm.graph)):
            board.note(self.passname)
        return original(self, *error)

    wrap(observer, "_check_disable_pass", refuse)
    wrap(observer, "__enter__", enter)
    wrap(observer, "__exit__", leave)


def _hook_patterns(board: Switchboard) -> None:
    """Hook the check of every registered pattern, which decides whether it applies, and the method that applies it."""
    matcher = importlib.import_module("torch._inductor.pattern_matcher")
    name_patterns(board)
    for kind in _ENTRIES:
        wrap(getattr(matcher, kind), "apply", functools.partial(_apply, board))


def name_patterns(board: Switchboard) -> None:
    """Replace the checks of all new registered patterns with names by checks that `board` can switch."""
    matcher = importlib.import_module("torch._inductor.pattern_matcher")
    for entry in list(_entries(matcher)):
        name = "" if isinstance(entry.extra_check, _Check) else _pattern_name(entry)
        if name:
            entry.extra_check = _Check(board, name, entry.extra_check)


def _entries(matcher: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the registered patterns, each once."""
    found = {}
    for item in gc.get_objects():
        if type(item) is matcher.PatternMatcherPass:
            for entries in item.patterns.values():
                found.update({id(entry): entry for entry in entries})
    return iter(found.values())


@dataclass(slots=True, eq=False)
class _Check:
    """A pattern's check that fails when the pattern is off."""

    board: Switchboard
    name: str
    original: Callable[[Any], bool]

    def __call__(self, match: Any) -> bool:  # noqa: ANN401
        return self.name not in self.board.off and self.original(match)


def _apply(board: Switchboard, original: Any, self: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
    check = self.extra_check
    if isinstance(check, _Check):
        board.note(check.name)
    return original(self, *args, **words)


def _pattern_name(entry: Any) -> str:  # noqa: ANN401
    """Return the name under which a pattern is switched; empty when it has none."""
    handler = getattr(entry, "handler", None)
    if handler is not None:
        generic = _GENERIC.search(getattr(handler, "__qualname__", ""))
        return generic[1] if generic and handler.__name__ == "fn" else getattr(handler, "__name__", "")
    name = getattr(entry, "pattern_name", None) or _described_by(entry.extra_check)
    return "fuse_attention" if _ATTENTION.match(name) else name


def _described_by(check: Any) -> str:  # noqa: ANN401
    """Return the name of the function that describes a pattern, which is in the closure of its check."""
    if not inspect.isfunction(check):
        return ""
    function = inspect.getclosurevars(check).nonlocals.get("search_fn")
    return getattr(function, "__name__", "")


def _hook_fusion(board: Switchboard) -> None:
    scheduler = importlib.import_module("torch._inductor.scheduler").Scheduler

    def fuse(original: Any, self: Any, nodes: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        fused = original(self, nodes, *args, **words)
        if len(fused) < len(nodes) and "scheduler_fusion" not in board.off:
            board.note("scheduler_fusion")
        return fused

    wrap(scheduler, "fuse_nodes_once", fuse)


def _hook_vectors(board: Switchboard) -> None:
    """Hook the heuristic that selects the axes to tile, because a loop nest is vectorised along these."""
    tiling = importlib.import_module("torch._inductor.codegen.cpp").TilingSelect

    def select(original: Any, self: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        factors, axes, *rest = original(self, *args, **words)
        if "vectorization" in board.off:
            return ([], [], *rest)
        if axes:
            board.note("vectorization")
        return (factors, axes, *rest)

    wrap(tiling, "select_tiling", select)


def _hook_buffers(board: Switchboard) -> None:
    wrapper = importlib.import_module("torch._inductor.codegen.wrapper").PythonWrapperCodegen

    def reuse(original: Any, self: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        if "buffer_reuse" not in board.off:
            board.note("buffer_reuse")
        return original(self, *args, **words)

    def inplace(original: Any, self: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        board.note("inplace_buffers")
        return original(self, *args, **words)

    wrap(wrapper, "make_buffer_reuse", reuse)
    wrap(wrapper, "codegen_inplace_reuse", inplace)
