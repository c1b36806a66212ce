"""Operations of a Relax program that may be undefined for other operands, or have effects.

A spliced program computes with unbounded values. Operations that divide integers, use computed indices, or leave
their function are therefore excluded from patterns, and no value that depends on a pattern may reach them.

Standalone scripts contain the text of this file, so it has plain functions and imports only TVM.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

from typing import Any

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call

OUTSIDE = (
    "relax.memory.", "relax.vm.", "relax.builtin.", "relax.ccl.", "relax.dist.", "relax.grad.", "relax.inspect.",
    "relax.vision.", "relax.call_", "relax.invoke_", "relax.make_closure", "relax.null_value", "relax.print",
    "relax.assert_op", "relax.to_vdevice", "relax.hint_on_device", "relax.multinomial", "relax.nn.dropout",
)  # fmt: skip
"""Prefixes of the names of operators that have effects, call code outside TVM or draw random numbers, except
`call_tir`."""

INDEXED = frozenset({
    "take", "gather_elements", "gather_nd", "scatter_elements", "scatter_nd", "index_put", "index_tensor",
    "slice_scatter", "dynamic_strided_slice", "reverse_sequence", "nonzero", "unique", "tensor_to_shape", "one_hot",
    "nn.nll_loss", "nn.cross_entropy_with_logits", "image.grid_sample", "nn.attention_var_len", "quantize",
})  # fmt: skip
"""Operators whose memory accesses, result sizes or conversions depend on the values of their operands."""

DIVIDING = frozenset({"divide", "floor_divide", "mod", "floor_mod", "power"})
"""Operators that are undefined for some integers."""

_LOADS = frozenset({"BufferLoad", "TensorLoad"})
_DIVISIONS = frozenset({"Div", "Mod", "FloorDiv", "FloorMod"})
_SHIFTS = frozenset({"LShift", "RShift"})
_LEAVING = ("call", "shift", "ptx", "cuda", "access", "address", "atomic", "alloc", "tvm_", "texture", "intrin")
"""Parts of the names of operators in loops that are not arithmetic."""

BITWISE = frozenset({"left_shift", "right_shift"})


def hazard(value: Any, module: Any) -> str:
    """Return why the operation `value`, bound in `module`, may be undefined; an empty text if it never is."""
    if not isinstance(value, Call):
        plain = (relax.Var, relax.Tuple, relax.TupleGetItem, relax.ShapeExpr, tvm.ir.Constant)
        return "" if isinstance(value, plain) else f"a {type(value).__name__}"
    if isinstance(value.op, tvm.ir.GlobalVar):
        return inner_hazard(value.op, module)
    if not isinstance(value.op, tvm.ir.Op):
        return "a call of a local function"
    name = value.op.name
    if name == "relax.call_tir":
        return "sizes as arguments" if len(value.args) > 2 else inner_hazard(value.args[0], module)
    return operator_hazard(name.removeprefix("relax."), value)


def operator_hazard(name: str, value: Any) -> str:
    """Return why a call of the operator `relax.name` may be undefined."""
    if f"relax.{name}".startswith(OUTSIDE):
        return f"{name} has effects"
    if name in INDEXED or name in BITWISE:
        return f"{name} of any values"
    kinds = [getattr(one.ty, "dtype", "") for one in value.args]
    if name in DIVIDING and not all(is_float(kind) for kind in kinds if kind):
        return f"{name} of integers"
    result = getattr(value.ty, "dtype", "")
    if name == "astype" and is_float(kinds[0]) and not is_float(result) and str(result) != "bool":
        return "a float made an integer"
    return ""


def inner_hazard(place: Any, module: Any, above: tuple[str, ...] = ()) -> str:
    """Return why the function at `place` may be undefined; recursion counts as such."""
    if place.name_hint in above:
        return "recursion"
    function = module[place]
    if isinstance(function, tirx.PrimFunc):
        return loop_hazard(function)
    if not isinstance(function, relax.Function):
        return "a function of another kind"
    if function.attrs is not None and any(key in function.attrs for key in ("Codegen", "Composite")):
        return "a function for another back end"
    for block in function.body.blocks:
        for binding in block.bindings:
            value = binding.value
            why = "a cast of sizes" if not isinstance(binding, relax.VarBinding) else ""
            if isinstance(value, Call) and isinstance(value.op, tvm.ir.GlobalVar):
                why = why or inner_hazard(value.op, module, (*above, place.name_hint))
            why = why or hazard(value, module)
            if why:
                return why
    return ""


def loop_hazard(function: Any) -> str:
    """Return why a loop program may be undefined, according to its text; this does not check that it writes all
    results."""
    found: list[str] = []
    if function.attrs is not None and "target" in function.attrs:
        found.append("loops for one target")

    copies: set[Any] = set()

    def is_loaded(one: Any) -> bool:
        kind = kind_of(one)
        return kind in _LOADS or (kind == "Var" and one in copies)

    def loaded(value: Any) -> bool:
        seen: list[bool] = []
        tvm_ffi.structural_walk(value, lambda one: seen.append(is_loaded(one)))
        return any(seen)

    def note(one: Any) -> None:
        if kind_of(one) in ("Bind", "Let", "LetStmt") and loaded(one.value):
            copies.add(one.var)

    tvm_ffi.structural_walk(function.body, note)

    def visit(one: Any) -> None:
        kind = kind_of(one)
        if kind in _DIVISIONS:
            if not is_float(one.b.ty) and loaded(one.b):
                found.append("loops that divide integers")
        elif kind in _SHIFTS:
            found.append("loops that shift")
        elif kind == "Cast":
            if is_float(one.value.ty) and not is_float(one.ty) and str(one.ty) != "bool":
                found.append("loops that make floats integers")
        elif kind in _LOADS or kind in ("BufferStore", "TensorStore"):
            if any(loaded(index) for index in one.indices):
                found.append("loops with computed indices")
        elif kind == "Call":
            called = getattr(one.op, "name", "")
            if not called.startswith(("tirx.", "prim.")) or any(word in called for word in _LEAVING):
                found.append("loops that leave TVM's code")
        elif kind == "For" and one.thread_binding is not None:
            found.append("loops for a GPU")
        elif kind == "While":
            found.append("loops without bound")

    tvm_ffi.structural_walk(function.body, visit)
    return found[0] if found else ""


def kind_of(one: Any) -> str:
    """Return the name of an object's type without its dialect, whose name differs between releases."""
    info = getattr(type(one), "__tvm_ffi_type_info__", None)
    return "" if info is None else str(info.type_key).rpartition(".")[2]


def is_float(kind: Any) -> bool:
    """Tell whether an element type is a float type."""
    return "float" in str(kind)
