"""Compilation and execution of a program by torch; standalone scripts contain the functions that they need."""

import contextlib
import functools
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch._dynamo
import torch._inductor.compile_fx
from numpy.typing import NDArray
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._inductor import config

from miscompile.targets.guards import guarded, watched
from miscompile.targets.inductor.decompositions import chosen_decompositions
from miscompile.targets.inductor.related import with_related
from miscompile.targets.inductor.settings import ALWAYS, CUDA_SETTINGS, settings_of


def configure() -> None:
    """Configure torch for one thread, and without cached results of its compiler."""
    torch.set_num_threads(1)
    torch.backends.nnpack.set_flags(False)  # warns on many processors
    torch._functorch.config.enable_autograd_cache = False
    if hasattr(torch._functorch.config, "force_non_lazy_backward_lowering"):
        torch._functorch.config.force_non_lazy_backward_lowering = True  # compile a backward pass with the forward one
    os.environ.pop("CI", None)  # under which no kernel is called for an operator that could be decomposed


def known(name: str) -> bool:
    """Tell whether this version has a setting; its name may contain dots."""
    owner: Any = config
    for part in name.split("."):
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return True


def settings_for(level: str, off: Collection[str], device: str = "cpu") -> dict[str, Any]:
    """Return Inductor's settings for a build; levels without its code generator have no further ones."""
    wanted: dict[str, Any] = {name: value for name, value in ALWAYS.items() if known(name)}
    if device != "cpu":
        wanted.update({name: value for name, value in CUDA_SETTINGS.items() if known(name)})
    return wanted if level in ("off", "aot") else {**wanted, **settings_of(level, off, known)}


def backend_for(level: str) -> Any:  # noqa: ANN401 - a backend
    """Return the backend of a level: at `off` and `aot` each operator runs in its own kernel."""
    if level == "off":
        return as_it_is
    return torch._dynamo.lookup_backend("aot_eager_decomp_partition" if level == "aot" else "inductor")


def as_it_is(graph: Any, inputs: Any) -> Any:  # noqa: ANN401 - of torch.fx
    """Run a graph unchanged."""
    del inputs
    return graph.forward


def decomposing(level: str, seed: int, share: float) -> Any:  # noqa: ANN401 - a backend
    """Return the backend of a level with another table of decompositions.

    Raises NotImplementedError for a release that accepts no other table.
    """
    table = chosen_decompositions(seed, share)
    if level in ("off", "aot"):
        return aot_autograd(fw_compiler=boxed, bw_compiler=boxed, decompositions=table)
    if not hasattr(torch._inductor.compile_fx, "_ConstantDecompTable"):
        raise NotImplementedError("this release lowers with its own table of decompositions alone")
    return functools.partial(torch._inductor.compile_fx.compile_fx, decompositions=table)


def boxed(graph: Any, inputs: Any) -> Any:  # noqa: ANN401 - of torch.fx
    """Run a decomposed graph, each operator in its own kernel."""
    del inputs
    return make_boxed_func(graph.forward)


def relating(level: str, seed: int, share: float) -> Any:  # noqa: ANN401 - a backend
    """Return the backend of a level, which first replaces operators in the graph by related ones."""
    backend = backend_for(level)

    def compile_graph(graph: Any, inputs: Any) -> Any:  # noqa: ANN401 - of torch.fx
        return backend(with_related(graph, seed, share), inputs)

    return compile_graph


def compile_program(function: Any, backend: Any) -> Any:  # noqa: ANN401 - functions
    """Return a function that is compiled as a whole, for the sizes of its arguments."""
    return torch.compile(function, backend=backend, fullgraph=True, dynamic=False)


def run_guarded(
    function: Any,  # noqa: ANN401 - a function of tensors
    feed: Mapping[str, NDArray[np.generic]],
    types: Mapping[str, str],
    place: str,
    fill: int,
) -> Sequence[torch.Tensor]:
    """Run on one feed whose arrays lie between guard pages, and with the byte `fill` in fresh memory.

    `types` has the inputs of bfloat16, which are words. torch allocates the outputs itself.
    """
    guards = [guarded(name, "input", np.asarray(array, order="C"), place) for name, array in feed.items()]
    given = [shared(guard.array, types.get(guard.name, "")) for guard in guards]
    with watched(guards, fill):
        return list(function(*given))


def shared(words: NDArray[np.generic], dtype: str) -> torch.Tensor:
    """Return a tensor in the memory of an array; bfloat16 is passed as 16-bit words."""
    if dtype == "bfloat16":
        return torch.from_numpy(words.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(words)


def on_device(name: str) -> contextlib.AbstractContextManager[Any]:
    """Make `device` the default for new tensors, because programs name no device."""
    return contextlib.nullcontext() if name == "cpu" else torch.device(name)


def make_exact() -> None:
    """Make CUDA's libraries compute in the program's types and in a fixed order."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
