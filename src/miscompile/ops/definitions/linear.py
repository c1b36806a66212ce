"""Definitions of operators of linear algebra.

https://onnx.ai/onnx/operators/onnx__Gemm.html, onnx__Det.html, onnx__AffineGrid.html
"""

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import EvaluatedCall, wide

_MOST = 2.0**31
"""Bound of the factors of integers; larger ones are left to onnx's evaluator."""


def gemm(given: EvaluatedCall) -> tuple[Array] | None:
    """Gemm of integers and whole factors, which wraps around; onnx's evaluator computes it in floats."""
    a, b, c = given.operand(0), given.operand(1), given.optional(2)
    alpha, beta = given.real("alpha", 1.0), given.real("beta", 1.0)
    if a.dtype.kind not in "iu" or not all(one.is_integer() and abs(one) < _MOST for one in (alpha, beta)):
        return None
    left, right = (one.T if given.integer(name, 0) else one for one, name in ((a, "transA"), (b, "transB")))
    product = np.array(int(alpha)).astype(a.dtype) * (left @ right)
    if c is None:
        return (product,)
    return (product + np.broadcast_to(np.array(int(beta)).astype(a.dtype) * c, product.shape),)


def det(given: EvaluatedCall) -> tuple[Array]:
    """Det in float32 or float64; onnx's evaluator gives 16-bit floats another type."""
    x = given.operand(0)
    return (np.asarray(np.linalg.det(wide(x))).astype(x.dtype),)


def affine_grid(given: EvaluatedCall) -> tuple[Array] | None:
    """AffineGrid: transformed coordinates of a grid over [-1, 1], in the type of `theta`.

    onnx's evaluator gives float32 for float64.
    """
    theta, sizes = given.operand(0), [int(size) for size in given.operand(1)[2:]]
    aligned = bool(given.integer("align_corners", 0))
    if aligned and 1 in sizes:
        return None  # the function body in the schema divides by zero
    lines = [np.linspace(-1, 1, size) if aligned else (2 * np.arange(size) + 1) / size - 1 for size in sizes]
    axes = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*reversed(axes), np.ones(sizes)], axis=-1)  # x comes first, and 1 for the translation
    return (np.einsum("...j,nij->n...i", points, wide(theta)).astype(theta.dtype),)
