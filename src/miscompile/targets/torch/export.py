"""Capture of a program's graph by torch before a compiler's front end, and example tensors for it.

A program's bytes contain no input values. Tracing runs the operator, and `torch.export` reads some numbers too, so
the examples have values that most operators accept: ones, with well-conditioned square matrices, or else zeros,
which are valid indices. A session checks at run time whether the graph is valid for other values.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Feed, Program
from miscompile.core.tensor import Tensor
from miscompile.targets.about import Session
from miscompile.targets.torch.modules import flat, module_of
from miscompile.targets.torch.runner import export_module
from miscompile.targets.torch.values import ELEMENTS, to_torch


class ExportRefusedError(Exception):
    """Torch cannot capture a graph of a program, so that no compiler receives it.

    The message begins with the class of torch's own error. `known-<via>.toml` of each front end lists this class.
    """


def examples(program: Program, module: torch.nn.Module) -> tuple[torch.Tensor, ...]:
    """Return tensors of ones or zeros on which `module`, made of `program`, runs; ones if it runs on neither.

    Raises NotImplementedError for element types that torch lacks.
    """
    candidates = ones(program), tuple(_filled(program, 0))
    return next((given for given in candidates if _results(module, given) is not None), candidates[0])


def ones(program: Program) -> tuple[torch.Tensor, ...]:
    """Return tensors of ones; floats whose last two sizes are equal have twos on the diagonal."""
    made = tuple(_filled(program, 1))
    for value in made:
        if value.dim() >= 2 and value.shape[-1] == value.shape[-2] and value.dtype in (torch.float32, torch.float64):
            value.diagonal(dim1=-2, dim2=-1).fill_(2)
    return made


def _filled(program: Program, number: int) -> Iterator[torch.Tensor]:
    for port in program.inputs:
        if port.dtype not in ELEMENTS:
            raise NotImplementedError(f"an element of {port.dtype} is no tensor's of torch")
        sizes = [size for size in port.shape or () if isinstance(size, int)]
        yield torch.full(sizes, number, dtype=torch.float32).to(ELEMENTS[port.dtype])


def exported(module: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> Any:  # noqa: ANN401 - an ExportedProgram
    """Return the program that `torch.export` captures. Raises ExportRefusedError for whatever it raises."""
    try:
        return export_module(module, given)
    except Exception as error:  # noqa: BLE001 - the exceptions of torch.export have no common class
        raise refused("torch.export", error) from None


def refused(step: str, error: BaseException | None) -> ExportRefusedError:
    """Return the error that torch cannot capture a graph in this step."""
    return ExportRefusedError(f"{step} makes no graph: {type(error).__name__}: {error}")


class CapturedSession:
    """A session of a graph that may depend on the example values on which it was captured.

    Torch, not the compiler, fixes control flow and sizes to those of the example. On each feed torch therefore first
    runs the `graph`, whose results must agree with those of the module that `module` makes.
    """

    def __init__(self, session: Session, module: Callable[[], Callable[..., Any]], graph: Callable[..., Any]) -> None:
        self._session, self._module, self._graph = session, module, graph

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed. Raises ExportRefusedError when the graph is not valid for it."""
        given = [to_torch(value) for value in feed]
        if not _agree(self._module(), self._graph, given):
            raise ExportRefusedError("the graph holds for other values of the inputs only")
        return self._session.run(feed)


def checked(session: Session, program: Program, graph: Any) -> Session:  # noqa: ANN401 - an ExportedProgram
    """Return a session of an exported program; if the graph may depend on values, the session checks it on each
    feed.

    Only integers become sizes and branches.
    """
    if all(DTYPES[port.dtype].kind in ("float", "complex") for port in program.inputs):
        return session
    return CapturedSession(session, partial(module_of, program.payload), graph.module())


def _agree(module: Callable[..., Any], graph: Callable[..., Any], given: Sequence[torch.Tensor]) -> bool:
    """Tell whether a graph and the module agree roughly on these tensors; both run the same kernels."""
    right = _results(module, given)
    if right is None:
        return True  # the library itself rejects them, so nothing is known about the graph
    found = _results(graph, given)
    return found is not None and len(right) == len(found) and all(map(_alike, right, found))


def _results(function: Callable[..., Any], given: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
    """Return the results of a function of tensors; None when it raises."""
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            return list(flat(function(*[value.clone() for value in given])))
    except Exception:  # noqa: BLE001 - torch may raise anything; any exception means None
        return None


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    wide = torch.complex128 if one.is_complex() else torch.float64
    alike: bool = torch.allclose(one.to(wide), other.to(wide), rtol=1e-2, atol=1e-3, equal_nan=True)
    return alike
