"""Run a file of PyTorch tests and store the graph before every pass of Inductor, as an ONNX model.

`python -m miscompile.harvest.patterns.hooks.torch TESTFILE OUT`.
Passes are recorded in Inductor's observer of passes, patterns of its matcher where they are applied, and passes that
a test calls directly in wrapped functions. PyTorch's exporter
(https://docs.pytorch.org/docs/stable/onnx_export.html) converts the graphs after each test, because it would disturb
a running compilation. Operators without an ONNX equivalent are counted by name.
"""

# ruff: noqa: ANN401 - torch's objects are not asked for their types

import functools
import importlib
import inspect
import logging
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from miscompile.harvest.patterns.hooks.recording import PairRecorder, line_of, main

_MODULES = ("pre_grad", "joint_graph", "post_grad", "binary_folding", "quantization", "split_cat", "group_batch_fusion")
"""Modules of torch._inductor.fx_passes whose functions tests call."""

_FIRST = frozenset({"gm", "graph", "graph_module", "module"})
"""The names of the first parameter of functions that are passes."""

_FRAMES = frozenset({"pre_grad_passes", "joint_graph_passes", "post_grad_passes", "fuse_fx", "graph_call_function"})
"""Functions with such a parameter that only call others, or are not passes."""

_ENTRIES = ("GraphPatternEntry", "LoweringPatternEntry", "ReplacementPatternEntry")
_SEQUENCES = frozenset({"SplitToSequence", "SequenceAt", "SequenceConstruct"})
"""Operators with which the exporter represents lists; constant folding removes them."""

_WITHOUT_FORM = re.compile(r"OpOverload\(op='([\w:.]+)'(?:, overload='(\w+)')?\)|function found for (\S+)")


class NoModelError(Exception):
    """A graph that cannot be converted to ONNX; the message is the reason."""


@dataclass(slots=True)
class PassWatch:
    """The state of the hook: running passes, applied patterns, and graphs that wait for conversion.

    Graphs are copied, because passes change them in place. `running` holds for each pass in progress its number, the
    copy and the text of the graph, and how many patterns had been applied when it began.
    """

    recorder: PairRecorder
    running: dict[int, tuple[Any, str, int]] = field(default_factory=dict)
    applied: list[str] = field(default_factory=list)
    waiting: list[tuple[Any, tuple[str, ...], str]] = field(default_factory=list)
    converting: bool = False
    known: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)

    def begin(self, key: int, graph_module: Any) -> None:
        """Store the graph before a pass."""
        if not self.converting:
            copied = copied_graph(graph_module)
            self.running[key] = copied, graph_text(graph_module.graph), len(self.applied)

    def end(self, key: int, name: str, graph: Any) -> None:
        """Add the graph to the list if the pass has changed it, with the applied patterns."""
        copied, before, mark = self.running.pop(key, (None, "", 0))
        if copied is None or before == graph_text(graph):
            return
        names = tuple(dict.fromkeys((name, *self.applied[mark:])))
        if (before, names) not in self.known:
            self.known.add((before, names))
            self.waiting.append((copied, names, self.recorder.test))

    def convert(self) -> None:
        """Convert and write all waiting graphs."""
        self.converting = True
        waiting, self.waiting = self.waiting, []
        self.running.clear()  # entries of passes that raised
        for module, names, test in waiting:
            self.recorder.test = test
            try:
                data = to_onnx(module)
            except NoModelError as error:
                for name in names:
                    self.recorder.left(str(error), name)
            else:
                for name in names:
                    self.recorder.pair(data, name, changed=True)
        self.converting = False


def copied_graph(graph_module: Any) -> Any:
    """Return a module with a copy of the graph and the same weights."""
    import torch

    graph, known = torch.fx.Graph(), dict[Any, Any]()
    result = graph.graph_copy(graph_module.graph, known)
    graph.output(result)
    return torch.fx.GraphModule(graph_module, graph)


def graph_text(graph: Any) -> str:
    """Return the text of a graph with the types of its inputs, to compare graphs."""
    return "\n".join([str(graph), *(f"{node.name}: {_known_type(node)}" for node in graph.nodes if _is_input(node))])


def _is_input(node: Any) -> bool:
    return bool(node.op == "placeholder")


def _known_type(node: Any) -> Any:
    """Return a graph's information on an input: an example tensor, or its description; None when there is none."""
    return next((node.meta[key] for key in ("val", "example_value", "tensor_meta") if key in node.meta), None)


def to_onnx(module: Any) -> bytes:
    """Return a graph as a serialised ONNX model. Raises NoModelError."""
    import torch

    inputs = tuple(_example(node) for node in module.graph.nodes if _is_input(node))
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(module, inputs, strict=False)
            made = torch.onnx.export(program, (), dynamo=True, optimize=False, verbose=False)
    except Exception as error:  # noqa: BLE001 - the exporter raises errors of every kind
        raise NoModelError(reason(error)) from None
    assert made is not None
    if any(node.op_type in _SEQUENCES for node in made.model.graph):
        importlib.import_module("onnxscript.optimizer").fold_constants(made.model)
    data: bytes = made.model_proto.SerializeToString()
    return data


def _example(node: Any) -> Any:
    """Return a tensor that fits an input. Raises NoModelError unless the input is a tensor of fixed sizes."""
    import torch

    known = _known_type(node)
    shape, dtype = getattr(known, "shape", None), getattr(known, "dtype", None)
    if shape is None or dtype is None:
        raise NoModelError("inputs that are no tensors, or of unknown type")
    if not all(isinstance(size, int) for size in shape):
        raise NoModelError("symbolic sizes")
    return torch.ones(tuple(shape), dtype=dtype)


def reason(error: BaseException) -> str:
    """Return why a graph cannot be converted: the unsupported operator, or else the class of the error."""
    seen: BaseException | None = error
    while seen is not None:
        found = _WITHOUT_FORM.search(str(seen))
        if found:
            return f"operator {found[1] or found[3]} has no ONNX form"
        seen = seen.__cause__ or seen.__context__
    return f"the exporter refuses it ({line_of(error)[:80]})"


def install(recorder: PairRecorder) -> Callable[[], None]:
    """Hook the passes; return a function that converts the waiting graphs after a test."""
    import torch

    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    watch = PassWatch(recorder)
    _hook_observer(watch)
    _hook_patterns(watch)
    for name in _MODULES:
        with suppress(ImportError):  # versions that lack it
            _hook_functions(watch, importlib.import_module(f"torch._inductor.fx_passes.{name}"))
    return watch.convert


def _hook_observer(watch: PassWatch) -> None:
    observer = importlib.import_module("torch.fx.passes.graph_transform_observer").GraphTransformObserver
    enter, leave = observer.__enter__, observer.__exit__

    @functools.wraps(enter)
    def begin(self: Any) -> Any:
        watch.begin(id(self), self.gm)
        return enter(self)

    @functools.wraps(leave)
    def end(self: Any, *error: Any) -> Any:
        watch.end(id(self), self.passname, self.gm.graph)
        return leave(self, *error)

    observer.__enter__, observer.__exit__ = begin, end


def _hook_patterns(watch: PassWatch) -> None:
    matcher = importlib.import_module("torch._inductor.pattern_matcher")
    for kind in _ENTRIES:
        _hook_entry(watch, getattr(matcher, kind))


def _hook_entry(watch: PassWatch, entry: Any) -> None:
    original = entry.apply

    @functools.wraps(original)
    def apply(self: Any, *args: Any, **words: Any) -> Any:
        name = getattr(self, "pattern_name", None) or getattr(getattr(self, "handler", None), "__name__", "")
        if name and not watch.converting:
            watch.applied.append(str(name))
        return original(self, *args, **words)

    entry.apply = apply


def _hook_functions(watch: PassWatch, module: Any) -> None:
    """Hook the functions of a module that take a graph."""
    for name, function in inspect.getmembers(module, inspect.isfunction):
        own = function.__module__ == module.__name__ and not name.startswith("_") and name not in _FRAMES
        first = next(iter(inspect.signature(function).parameters), "")
        if own and first in _FIRST:
            setattr(module, name, _watched(watch, name, function))


def _watched(watch: PassWatch, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(given: Any, *args: Any, **words: Any) -> Any:
        owner = given if hasattr(given, "graph") else getattr(given, "owning_module", None)
        if owner is None:
            return function(given, *args, **words)
        key = -len(watch.running) - 1  # passes call each other
        watch.begin(key, owner)
        result = function(given, *args, **words)
        watch.end(key, name, result.graph if hasattr(result, "graph") else owner.graph)
        return result

    return called


if __name__ == "__main__":
    sys.exit(main(install))
