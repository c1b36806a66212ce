"""Calls that onnx.reference is known to evaluate wrongly, with the reason.

The conformance kit skips the comparison of values for them (not the checks of types and shapes). Remove an entry when
onnx fixes the bug.
"""

from collections.abc import Callable

from miscompile.base.dtypes import BY_CODE, FLOATS, SMALL_INTEGERS
from miscompile.ops.spatial import window_of
from miscompile.ops.spec import Call


def reference_bug(call: Call) -> str | None:
    """Return why the reference evaluator's results for `call` are not to be trusted; None when they are."""
    entry = _GAPS.get(call.op)
    return entry[1] if entry is not None and entry[0](call) else None


def _dtype(*names: str) -> Callable[[Call], bool]:
    return lambda call: call.operand(0).dtype in names


def _max_pool(call: Call) -> bool:
    window, bytes_ = window_of(call), call.operand(0).dtype in ("int8", "uint8")
    return bytes_ or call.outputs > 1 or any(window.pads) or window.auto_pad.startswith("SAME")


def _other_pool(call: Call) -> bool:
    window = window_of(call)
    dilated = window.auto_pad != "NOTSET" and max(window.dilations) > 1
    return dilated or (window.ceil and any(map(window.overhang, range(window.rank), call.operand(0).shape[2:])))


def _small_to_small(call: Call) -> bool:
    """A conversion from one type of fewer than 8 bits to another."""
    source = call.operand(0).dtype
    target = call.operand(1).dtype if call.op == "CastLike" else BY_CODE[call.integer("to")].name
    return source != target and {source, target} <= set(SMALL_INTEGERS)


_POOL = (_other_pool, "onnx.reference mistakes dilations with auto_pad, and windows that ceil_mode adds, when pooling")

_GAPS: dict[str, tuple[Callable[[Call], bool], str]] = {
    "AffineGrid": (_dtype("float64"), "onnx.reference gives AffineGrid of float64 as float32"),
    "AveragePool": _POOL,
    **dict.fromkeys(("Cast", "CastLike"), (_small_to_small, "onnx.reference converts no small integers to each other")),
    "Det": (_dtype("float16", "bfloat16"), "onnx.reference computes Det of 16-bit floats in another type"),
    "Erf": (_dtype("float64"), "onnx.reference rounds Erf to float32"),
    "GlobalMaxPool": (lambda call: call.operand(0).rank != 4, "onnx.reference squeezes GlobalMaxPool's spatial axes"),
    "LayerNormalization": (
        lambda call: call.outputs > 1 and call.operand(0).dtype != "float32",
        "onnx.reference gives Mean and InvStdDev the type of X, not of the stash",
    ),
    "LpNormalization": (
        lambda call: call.integer("p", 2) % 2 == 1 and call.facts().lo < 0,
        "onnx.reference takes no absolute values in LpNormalization",
    ),
    "QLinearConv": (
        lambda call: call.operand(0).rank != 4 and call.operand(4).rank == 1,
        "onnx.reference broadcasts the filters' scales of QLinearConv over images only",
    ),
    "LpPool": _POOL,
    "MaxPool": (_max_pool, "onnx.reference mistakes padding, Indices and integers of MaxPool"),
    "OneHot": (
        lambda call: call.operand(2).dtype in FLOATS,
        "onnx.reference computes off + (on - off) in OneHot, which rounds",
    ),
    "ReduceSumSquare": (_dtype("int32", "uint32"), "onnx.reference sums ReduceSumSquare of 32-bit integers in 64 bits"),
    "Shape": (
        lambda call: call.integer("end") < -call.operand(0).rank,
        "onnx.reference takes an end of Shape before the first axis for one counted from the back",
    ),
}
