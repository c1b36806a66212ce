"""Matrix products and determinants."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers

matmul = lowers("MatMul")(lambda a, b: torch.matmul(a, b))  # the product of matrices, broadcast over the axes before


@lowers("Gemm")
def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - the attribute's name
    transB: int = 0,  # noqa: N803
) -> Any:
    """alpha * a @ b + beta * c, with a and b transposed on request."""
    a, b = a.t() if transA else a, b.t() if transB else b
    if not a.is_floating_point():
        if alpha != int(alpha) or beta != int(beta):
            raise NotImplementedError("Gemm of integers by a fraction has no lowering")
        alpha, beta = int(alpha), int(beta)
    if c is not None:
        return torch.addmm(c, a, b, beta=beta, alpha=alpha)
    return torch.mm(a, b) if alpha == 1 else alpha * torch.mm(a, b)


einsum = lowers("Einsum")(lambda *xs, equation: torch.einsum(equation, *xs).to(xs[0].dtype))
det = lowers("Det")(lambda x: torch.linalg.det(x))


@lowers("MatMulInteger")
def matmul_integer(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    """The product of 8-bit matrices in 32 bits; there may be one zero point per row of a and per column of b."""
    a, b = a.to(torch.int32), b.to(torch.int32)
    if a_zero is not None:
        a = a - (a_zero.unsqueeze(-1) if a_zero.dim() == 1 and a_zero.shape[0] > 1 else a_zero).to(torch.int32)
    if b_zero is not None:
        b = b - b_zero.to(torch.int32)
    return torch.matmul(a, b)
