"""Switches for Inductor's FX passes, patterns and vectorisation, for which it has no usable settings; standalone
scripts contain those that they need.

Each switch wraps a method of one of Inductor's classes for the rest of the process. `SWITCHED_OFF` holds the
names that are off. `switch_patterns` affects only registered patterns, so it is called again after a registration.
"""

import contextlib
import functools
import gc
import inspect
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch

SWITCHED_OFF: set[str] = set()
"""The names that are off in the current build."""

LEVEL_OFF = {"nopasses": ("vectorization",)}
"""The names that each level switches off in addition to its settings."""


def switch_off(level: str, disabled: Collection[str]) -> None:
    """Switch off exactly `disabled` and the names that `level` switches off, in all later compilations."""
    SWITCHED_OFF.clear()
    SWITCHED_OFF.update(disabled, LEVEL_OFF.get(level, ()))


def replace_method(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:  # noqa: ANN401 - a class or module of torch
    """Replace function or method `name` of `owner` by `wrapper`, whose first argument is the original."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **words: Any) -> Any:  # noqa: ANN401
        return wrapper(original, *args, **words)

    plain = isinstance(vars(owner).get(name), staticmethod)
    setattr(owner, name, staticmethod(wrapped) if plain else wrapped)


def switch_graph_passes() -> None:
    """Make FX passes switchable: the observer in which they run has their names and can skip them."""
    observer = import_module("torch.fx.passes.graph_transform_observer").GraphTransformObserver
    replace_method(
        observer, "_check_disable_pass", lambda original, self: self.passname in SWITCHED_OFF or original(self)
    )


def switch_vectors() -> None:
    """Make vectorisation switchable: a loop nest is vectorised along the axes that a heuristic selects to tile.

    Inductor's setting `cpp.simdlen` changes the flags of the C++ compiler as well.
    """
    tiling = import_module("torch._inductor.codegen.cpp").TilingSelect

    def select(original: Any, self: Any, *args: Any, **words: Any) -> Any:  # noqa: ANN401
        factors, axes, *rest = original(self, *args, **words)
        return ([], [], *rest) if "vectorization" in SWITCHED_OFF else (factors, axes, *rest)

    replace_method(tiling, "select_tiling", select)


@contextlib.contextmanager
def cuda_hidden() -> Iterator[None]:
    """Hide CUDA, because a check for it starts the driver, and then workers cannot be forked any more.

    Inductor checks when it registers its patterns, and traces them on the device if there is one.
    """
    original = torch.cuda.is_available
    torch.cuda.is_available = lambda: False
    try:
        yield
    finally:
        torch.cuda.is_available = original


def register_patterns(device: torch.device | None = None) -> None:
    """Register the patterns that Inductor registers at the first compilation, so that they can be switched.

    For a `device` only one module registers its patterns again.
    """
    for module in ("pre_grad", "joint_graph", "post_grad") if device is None else ("joint_graph",):
        try:
            passes = import_module(f"torch._inductor.fx_passes.{module}")
            passes.lazy_init(*([] if device is None else [device]))
        except (ImportError, AttributeError, TypeError):  # other versions register them differently
            continue


def switch_patterns() -> None:
    """Make all registered patterns with names switchable: replace the checks that decide whether one applies."""
    matcher = import_module("torch._inductor.pattern_matcher")
    found = [item.patterns for item in gc.get_objects() if type(item) is matcher.PatternMatcherPass]
    for entry in {id(one): one for patterns in found for several in patterns.values() for one in several}.values():
        name = "" if isinstance(entry.extra_check, PatternCheck) else pattern_name(entry)
        if name:
            entry.extra_check = PatternCheck(name, entry.extra_check)


@dataclass(slots=True, eq=False)
class PatternCheck:
    """A pattern's check that fails when the pattern is off."""

    name: str
    original: Callable[[Any], bool]

    def __call__(self, match: Any) -> bool:  # noqa: ANN401
        """Tell whether the pattern applies to `match`."""
        return self.name not in SWITCHED_OFF and self.original(match)


def pattern_name(entry: Any) -> str:  # noqa: ANN401
    """Return the name under which a pattern is switched; empty when it has none.

    It is the name of its handler, or of the function that describes the pattern, which is in the closure of its check.
    """
    handler = getattr(entry, "handler", None)
    if handler is not None:
        generic = re.search(r"_register_(\w+?)_lowering\.", getattr(handler, "__qualname__", ""))
        return generic[1] if generic and handler.__name__ == "fn" else getattr(handler, "__name__", "")
    name = getattr(entry, "pattern_name", None) or ""
    if not name and inspect.isfunction(entry.extra_check):
        described = inspect.getclosurevars(entry.extra_check).nonlocals.get("search_fn")
        name = getattr(described, "__name__", "")
    return "fuse_attention" if re.match(r"_?sfdp_pattern_", name) else name
