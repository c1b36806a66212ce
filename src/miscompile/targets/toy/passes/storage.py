"""The last rewrites: loops over tiles, and values that reuse the storage of others."""

from dataclasses import replace

from miscompile.targets.toy.ir import Bugs, Code, ToyCall
from miscompile.targets.toy.passes.layout import permutation
from miscompile.targets.toy.passes.rewriting import only_use, same_shape

_LOOPED = ("Neg", "Abs", "Relu", "Floor", "Ceil", "Round", "Sqrt", "Sign", "Not", "BitwiseNot", "LeakyRelu")
_OVERWRITING = frozenset(
    {"Add", "Sub", "Mul", "Div", "Max", "Min", "Neg", "Abs", "Relu", "Exp", "Tanh", "Sigmoid", "Sqrt", "Floor",
     "And", "Or", "Xor", "Not", "Where", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "ElementwiseLoop"}
)  # fmt: skip
_ALLOCATING = _OVERWRITING - {"Max", "Min"} | {
    "MatMul", "Gemm", "Conv", "TiledMatMul", "BlockTranspose", "Slice", "Gather", "Concat", "TableLookup", "Cast",
    "QuantizeLinear", "DequantizeLinear", "Pad", "Erf", "Sin", "Cos", "Log",
}  # fmt: skip


def tile_matmul(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """A product of two matrices is computed tile by tile. Rounds."""
    del bugs
    if call.op != "MatMul" or call.attributes or any(code.rank(name) != 2 for name in call.inputs):
        return False
    code.swap(call, ToyCall("TiledMatMul", call.inputs, call.outputs))
    return True


def block_transpose(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """A Transpose of a matrix or of higher rank copies blocks of rows."""
    del bugs
    perm = permutation(code, call) if call.op == "Transpose" else None
    if perm is None or len(perm) < 2:
        return False
    code.swap(call, ToyCall("BlockTranspose", call.inputs, call.outputs, {"perm": perm}))
    return True


def fuse_elementwise(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Unary calls that feed each other alone become one loop, which is exact: none of them rounds by its neighbours."""
    del bugs
    inner = code.made_by(call.inputs[0], "ElementwiseLoop", *_LOOPED) if call.op in _LOOPED else None
    if inner is None or not only_use(code, inner.out) or not same_shape(code, inner.inputs[0], call.out):
        return False
    steps = inner.get("steps", (inner,))
    code.swap(call, ToyCall("ElementwiseLoop", inner.inputs[:1], call.outputs, {"steps": (*steps, call)}))
    code.swap_out(inner)
    return True


def reuse_buffers(code: Code, bugs: Bugs) -> bool:
    """Let elementwise calls write their result over an operand that nothing reads any more.

    A value may share storage with others: views and calls that hand on an operand join their groups. The storage of
    inputs, constants and outputs is never written.
    """
    del bugs
    group = _groups(code)
    last = {}
    for place, call in enumerate(code.calls):
        last.update({group[name]: place for name in call.inputs if name})
    kept = {group[name] for name in (*code.inputs, *code.constants, *code.outputs) if name in group}
    calls, written = [], set()
    for place, call in enumerate(code.calls):
        donor = _donor(code, call) if call.op in _OVERWRITING else ""
        storage = group[donor] if donor else ""
        if donor and storage not in kept and last[storage] <= place and storage not in written:
            calls.append(replace(call, attributes={**call.attributes, "into": donor}))
            written.add(storage)
        else:
            calls.append(call)
    if not written:
        return False
    code.retain(calls)
    return True


def _donor(code: Code, call: ToyCall) -> str:
    """Return the first operand with the type of the result."""
    for name in call.inputs:
        if name and code.dtype(name) == code.dtype(call.out) and same_shape(code, name, call.out):
            return name
    return ""


def _groups(code: Code) -> dict[str, str]:
    """Return a name for the storage of each value; calls that may hand on an operand join all of their values."""
    group = {name: name for name in (*code.inputs, *code.constants)}
    for call in code.calls:
        fresh = call.op in _ALLOCATING
        operands = [] if fresh else [group[name] for name in call.inputs if name]
        storage = operands[0] if operands else call.out
        group.update({name: storage for name in call.outputs if name})
        for other in operands[1:]:
            group.update({name: storage for name, held in group.items() if held == other})
    return group
