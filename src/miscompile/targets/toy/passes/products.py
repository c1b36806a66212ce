"""Rewrites of matrix products and of the calls around them."""

import numpy as np

from miscompile.targets.toy.ir import Bugs, Code, ToyCall
from miscompile.targets.toy.passes.layout import permutation
from miscompile.targets.toy.passes.rewriting import int64, only_use, swapped_pairs


def transpose_inside_gemm(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Transpose of a matrix before a Gemm becomes its flag. BLAS adds in another order then. Rounds."""
    del bugs
    if call.op != "Gemm":
        return False
    for place, flag in ((0, "transA"), (1, "transB")):
        source = code.made_by(call.inputs[place], "Transpose")
        if source is not None and permutation(code, source) == (1, 0):
            inputs = list(call.inputs)
            inputs[place] = source.inputs[0]
            changed = {**call.attributes, flag: 1 - call.get(flag, 0)}
            code.swap(call, ToyCall("Gemm", tuple(inputs), call.outputs, changed))
            return True
    return False


def transpose_inside_matmul(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Transpose of both matrices of a product becomes the Transpose of the exchanged product. Rounds."""
    del bugs
    if call.op != "MatMul" or call.attributes:
        return False
    sources = [code.made_by(name, "Transpose") for name in call.inputs]
    left, right = sources
    if left is None or right is None or permutation(code, left) != (1, 0) or permutation(code, right) != (1, 0):
        return False
    shape = code.shape(call.out)
    if shape is None or not only_use(code, left.out) or not only_use(code, right.out):
        return False
    inner = code.fresh(code.dtype(call.out), shape[::-1])
    product = ToyCall("MatMul", (right.inputs[0], left.inputs[0]), (inner,))
    code.swap(call, product, ToyCall("Transpose", (inner,), call.outputs, {"perm": (1, 0)}))
    return True


def scale_weights(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """(x @ W) * c becomes x @ (W * c), for constants W and c, and c with one number for each column. Rounds."""
    del bugs
    if call.op != "Mul" or code.dtype(call.out) not in (np.dtype(np.float32), np.dtype(np.float64)):
        return False
    for product, other in swapped_pairs(call):
        matmul, factor = code.made_by(product, "MatMul"), code.constant(other)
        if matmul is None or matmul.attributes or factor is None or not only_use(code, product):
            continue
        weight, rank = code.constant(matmul.inputs[1]), code.rank(product)
        if weight is None or weight.ndim != 2 or rank is None or rank < 2 or factor.ndim > rank:
            continue
        if factor.size != 1 and (factor.shape[-1] != weight.shape[1] or factor.size != factor.shape[-1]):
            continue
        with np.errstate(all="ignore"):
            scaled = (weight * factor.reshape(-1)).astype(weight.dtype)
        if np.isfinite(scaled).all():
            code.swap(call, ToyCall("MatMul", (matmul.inputs[0], code.add_constant(scaled)), call.outputs))
            return True
    return False


def reduce_for_pool(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """GlobalAveragePool becomes ReduceMean, and GlobalMaxPool ReduceMax, over the spatial axes."""
    del bugs
    rank = code.rank(call.inputs[0]) if call.op in ("GlobalAveragePool", "GlobalMaxPool") else None
    if rank is None:
        return False
    axes = code.add_constant(int64(tuple(range(2, rank))))
    op = "ReduceMean" if call.op == "GlobalAveragePool" else "ReduceMax"
    code.swap(call, ToyCall(op, (call.inputs[0], axes), call.outputs, {"keepdims": 1}))
    return True


def recognise_softmax(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Exp(x) / ReduceSum(Exp(x)) along one axis becomes Softmax(x), which overflows later. Rounds."""
    del bugs
    raised = code.made_by(call.inputs[0], "Exp") if call.op == "Div" else None
    total = code.made_by(call.inputs[1], "ReduceSum") if raised is not None else None
    if raised is None or total is None or total.inputs[0] != raised.out or total.get("keepdims", 1) != 1:
        return False
    axes = code.constant(total.input(1)) if total.input(1) else None
    if axes is None or axes.size != 1 or code.dtype(call.out) == np.dtype(np.float16):
        return False
    code.swap(call, ToyCall("Softmax", raised.inputs, call.outputs, {"axis": int(axes.reshape(()))}))
    return True
