"""Inductor's front end for programs of torch: `torch.compile` of the whole module."""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo
from torch._inductor import config as settings

from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor
from miscompile.targets.about import Session
from miscompile.targets.inductor.adapter import Inductor, compiled
from miscompile.targets.inductor.runner import backend_for, settings_for
from miscompile.targets.torch.adapter import EagerTorch
from miscompile.targets.torch.conversions import Conversions, name_of
from miscompile.targets.torch.export import examples, refused
from miscompile.targets.torch.modules import module_of, tensors_of
from miscompile.targets.torch.values import to_torch


class TorchInductor(Inductor):
    """Compiles modules; at level off they are called eagerly."""

    def __init__(self) -> None:
        super().__init__()
        self._conversions = Conversions()
        _watch(self._conversions)

    def build(self, program: Program, build: Build) -> Session:  # type: ignore[override]
        """Compile `program`. Raises ExportRefusedError for a graph break, OutsideTorchError, and what torch raises."""
        self._conversions.begin(build)
        if build.level == "off":
            return EagerTorch(program.payload)
        self._begin(build)
        module = module_of(program.payload)
        given = examples(program, module)
        with settings.patch(settings_for(build.level, build.disabled)):
            try:
                return CompiledSession(compiled(module, backend_for(build.level), given))
            except (torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError) as error:
                raise refused("torch.compile", error) from None

    def fired(self, log: str) -> tuple[str, ...]:
        """Names of the functions that lowered the operators of the program, in order."""
        del log
        return self._conversions.seen()


class CompiledSession:
    """A compiled module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._runs = 0

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed, with the seed of the eager module."""
        torch.manual_seed(self._runs)
        self._runs += 1
        with torch.no_grad():
            return tensors_of(self._function(*map(to_torch, feed)))


def _watch(conversions: Conversions) -> None:
    """Record the lowerings of a graph's operators."""
    from torch._inductor import graph, lowering

    kind = graph.GraphLowering
    original: Callable[..., Any] = kind.call_function

    @functools.wraps(original)
    def call_function(self: Any, target: Any, args: Any, kwargs: Any) -> Any:  # noqa: ANN401
        function = lowering.lowerings.get(target)
        if function is not None:
            conversions.note(name_of(function, str(target)))
        return original(self, target, args, kwargs)

    kind.call_function = call_function
