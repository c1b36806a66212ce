"""Backends of `torch.compile` for a program in the adapter's own form: with another table of decompositions."""

import functools
from typing import Any

import torch._inductor.compile_fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

from miscompile.targets.inductor.decompositions import chosen_decompositions
from miscompile.targets.inductor.forms import Decomposed


def inductor(form: Decomposed | None) -> Any:  # noqa: ANN401 - a backend
    """Return Inductor, with the decompositions of `form` in place of its own.

    Raises NotImplementedError for a release that takes no others.
    """
    compile_fx = torch._inductor.compile_fx.compile_fx
    if form is None:
        return compile_fx
    if not hasattr(torch._inductor.compile_fx, "_ConstantDecompTable"):
        raise NotImplementedError("this release lowers with its own table of decompositions alone")
    return functools.partial(compile_fx, decompositions=chosen_decompositions(form.seed, form.share))


def taken_apart(form: Decomposed) -> Any:  # noqa: ANN401 - a backend
    """Return a backend that decomposes and then runs each operator by its own kernel."""

    def run_eagerly(graph: Any, inputs: Any) -> Any:  # noqa: ANN401
        del inputs
        return make_boxed_func(graph.forward)

    table = chosen_decompositions(form.seed, form.share)
    return aot_autograd(fw_compiler=run_eagerly, bw_compiler=run_eagerly, decompositions=table)
