"""Public names of PyTorch's operators, and its functions that are not operators.

The table maps the function object that a call reaches to its public import path.
"""

# ruff: noqa: ANN401 - functions of all kinds, many of them not Python's

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from miscompile.instances.instance import CallStyle

_SPACES = (
    "torch.nn.functional",
    "torch.linalg",
    "torch.special",
    "torch.fft",
    "torch.signal.windows",
    "torch.masked",
    "torch",
)
"""The modules that are searched for functions; a function in two of them has the first name."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MAKERS = _words(
    "tensor as_tensor asarray from_numpy from_dlpack frombuffer from_file rand randn randint randperm empty "
    "empty_strided empty_permuted empty_like rand_like randn_like randint_like manual_seed seed initial_seed"
)
"""Functions that create the data of tests: random ones, and constructors of literal tensors."""

_QUESTIONS = _words(
    "size stride dim ndimension numel nelement item tolist numpy storage storage_offset untyped_storage data_ptr "
    "element_size get_device backward register_hook retain_grad requires_grad_ detach detach_ cpu cuda xpu pin_memory "
    "share_memory_ as_subclass set_ set_default_dtype set_default_device set_grad_enabled save load compile typename "
    "result_type can_cast promote_types get_default_dtype equal allclose set_printoptions no_grad enable_grad apply_ "
    "map_ map2_ has_names is_tensor is_floating_point is_complex is_storage is_same_size is_set_to is_contiguous "
    "is_nonzero is_pinned is_shared is_signed is_inference is_conj is_neg is_coalesced data ipu type_as record_stream "
    "to_sparse to_mkldnn to_sparse_csr to_dense new new_tensor new_empty new_empty_strided sparse_mask dense_dim "
    "sparse_dim reinforce refine_names rename align_to align_as names "
    "as_masked_tensor masked_tensor is_masked_tensor dsmm spmm hsmm hspmm smm saddmm sspaddmm"
)
"""Functions that query tensors or configure the library; they compute nothing that a compiler must compile."""

_SPECIAL = _words(
    "__getitem__ __radd__ __rmul__ "
    "__rsub__ __rtruediv__ __rpow__ __rmatmul__ __rfloordiv__ __rmod__ __rlshift__ __rrshift__ "
    "__and__ __or__ __xor__ __iand__ __ior__ __ixor__ __rand__ __ror__ __rxor__ __lshift__ __rshift__ __ilshift__ "
    "__irshift__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __invert__ __neg__ __add__ __sub__ __mul__ __truediv__ "
    "__floordiv__ __pow__ __mod__ __matmul__ __abs__ __pos__ __iadd__ __isub__ __imul__ __itruediv__"
)
"""Python's own operators."""

CONTAINERS = _words("Module Container Sequential ModuleList ModuleDict ParameterList ParameterDict")
"""Modules that compute nothing themselves; calls of their submodules count as calls by the user."""


@dataclass(frozen=True, slots=True)
class TorchOperator:
    """An operator by its public name."""

    api: str
    form: CallStyle


@cache
def operators() -> Mapping[Any, TorchOperator]:
    """Return the functions and methods of PyTorch that are operators, with their names."""
    found: dict[Any, TorchOperator] = {}
    for space in _SPACES:
        module = importlib.import_module(space)
        for name in sorted(vars(module)):
            one = getattr(module, name)
            if not _left_out(name) and callable(one) and not isinstance(one, type) and _plain(one):
                found.setdefault(one, TorchOperator(f"{space}.{name}", "function"))
    for name in sorted(dir(torch.Tensor), key=lambda name: (name.startswith("_"), name)):
        one = getattr(torch.Tensor, name)
        if (name in _SPECIAL or not _left_out(name)) and callable(one) and _plain(one):
            found.setdefault(one, TorchOperator(f"torch.Tensor.{name}", "method"))
    return found


def _left_out(name: str) -> bool:
    return name.startswith("_") or name in _MAKERS or name in _QUESTIONS


def _plain(one: Any) -> bool:
    """Tell whether this is a function of torch; `torch.typing` and imported functions of Python do not count."""
    home = getattr(one, "__module__", None) or getattr(getattr(one, "__objclass__", None), "__module__", None)
    return bool(getattr(one, "__hash__", None)) and (home is None or str(home).partition(".")[0] == "torch")


@cache
def modules() -> Mapping[type[torch.nn.Module], str]:
    """Return the classes of modules that compute something, with their names."""
    return {
        one: f"torch.nn.{name}"
        for name, one in sorted(vars(torch.nn).items())
        if isinstance(one, type) and issubclass(one, torch.nn.Module) and name not in CONTAINERS
    }
