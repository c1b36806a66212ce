"""Backends of `torch.compile`, also for a program in transformed by the adapter itself."""

import functools
from typing import Any

import torch._dynamo
import torch._inductor.compile_fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

from miscompile.targets.inductor.decompositions import chosen_decompositions
from miscompile.targets.inductor.related import with_related
from miscompile.targets.inductor.transforms import Decomposed, Related


def inductor(transform: Decomposed | Related | None) -> Any:  # noqa: ANN401 - a backend
    """Return Inductor, with the decompositions of `transform` in place of its own, or its operators in the graph.

    Raises NotImplementedError for a release that takes no others.
    """
    compile_fx = torch._inductor.compile_fx.compile_fx
    if transform is None:
        return compile_fx
    if isinstance(transform, Related):
        return _rewriting(transform, compile_fx)
    if not hasattr(torch._inductor.compile_fx, "_ConstantDecompTable"):
        raise NotImplementedError("this release lowers with its own table of decompositions alone")
    return functools.partial(compile_fx, decompositions=chosen_decompositions(transform.seed, transform.share))


def interpreter(transform: Decomposed | Related | None, level: str) -> Any:  # noqa: ANN401 - a backend
    """Return a backend that runs each operator by its own kernel; at level `aot` they have been taken apart before."""
    if isinstance(transform, Decomposed):
        return decomposed(transform)
    backend = torch._dynamo.lookup_backend("aot_eager_decomp_partition") if level == "aot" else _as_it_is
    return backend if transform is None else _rewriting(transform, backend)


def decomposed(transform: Decomposed) -> Any:  # noqa: ANN401 - a backend
    """Return a backend that decomposes and then runs each operator by its own kernel."""

    def run_eagerly(graph: Any, inputs: Any) -> Any:  # noqa: ANN401
        del inputs
        return make_boxed_func(graph.forward)

    table = chosen_decompositions(transform.seed, transform.share)
    return aot_autograd(fw_compiler=run_eagerly, bw_compiler=run_eagerly, decompositions=table)


def _as_it_is(graph: Any, inputs: Any) -> Any:  # noqa: ANN401
    """Run a graph as it is."""
    del inputs
    return graph.forward


def _rewriting(transform: Related, backend: Any) -> Any:  # noqa: ANN401 - a backend
    """Return `backend` with related operators in the graph that it is given."""

    def compile_graph(graph: Any, inputs: Any) -> Any:  # noqa: ANN401
        return backend(with_related(graph, transform.seed, transform.share), inputs)

    return compile_graph
