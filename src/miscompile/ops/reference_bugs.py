"""Calls that onnx.reference is known to evaluate wrongly, with the reason.

The conformance kit skips the comparison of values for them (not the checks of types and shapes), and the reference
implementation has no vote on a program with such a call. It has none either on calls that it computes less exactly than
their type allows, whose values the kit compares all the same. Remove an entry when onnx fixes the bug.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from miscompile.base.dtypes import BY_CODE, FLOATS, SMALL_INTEGERS
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Model, Node
from miscompile.ops.analysis import analyse
from miscompile.ops.analysis_bodies import Operands
from miscompile.ops.spatial import window_of
from miscompile.ops.spec import Call


def reference_bug(call: Call) -> str | None:
    """Return why the reference evaluator's results for `call` are not to be trusted; None when they are."""
    entry = _GAPS.get(call.op)
    return entry[1] if entry is not None and entry[0](call) else None


def is_mistaken(model: Model, feed: Mapping[str, Tensor]) -> bool:
    """Tell whether the reference evaluator may give wrong results for `model` on `feed`, the inputs by name.

    A call whose operands have no known type is doubted for the sake of its operator alone.
    """
    functions = [node for function in model.functions for node in _all(function.nodes)]
    if any(_is_doubted(node) for node in functions):
        return True
    if any(model.opset < _NEWER.get(node.op, 0) for node in (*functions, *_all(model.graph.nodes))):
        return True
    if not any(_is_doubted(node) for node in _all(model.graph.nodes)):
        return False
    doubtful = False

    def visit(node: Node, operands: Operands, made: Operands) -> None:
        nonlocal doubtful
        del made
        doubtful = doubtful or _may_be_mistaken(node, operands)

    operands = analyse(model, feed, visit)
    for node in model.graph.nodes:
        visit(node, operands, {})
    return doubtful


def _is_doubted(node: Node) -> bool:
    return node.op in _GAPS or node.op in _COARSE


def _may_be_mistaken(node: Node, operands: Operands) -> bool:
    if node.domain or not _is_doubted(node):
        return False
    if any(name and name not in operands for name in node.inputs):
        return True
    inputs = tuple(operands[name] if name else None for name in node.inputs)
    try:
        call = Call(node.op, inputs, node.attributes, len(node.outputs))
        return reference_bug(call) is not None or (node.op in _COARSE and _COARSE[node.op](call))
    except (ArithmeticError, AssertionError, IndexError, KeyError, ValueError):
        return True  # a call that no sampler makes


def _all(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes, and those of their bodies."""
    for node in nodes:
        yield node
        for body in node.subgraphs():
            yield from _all(body.nodes)


def _recurrent(call: Call) -> bool:
    """A layer with an attribute or operand that the evaluator ignores. It knows the activations of RNN alone."""
    ignored: tuple[str, ...] = ("clip", "input_forget")
    if call.op != "RNN":
        ignored += ("activations", "activation_alpha", "activation_beta")
    elif call.text("direction") == "bidirectional":
        ignored += ("activations",)
    return call.has(4) or bool(call.integer("layout")) or any(name in call.attributes for name in ignored)


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


_NEWER = {"RoiAlign": 16}
"""Operators that the evaluator computes in one way for all opsets, with the one that brought this way: RoiAlign moves
its boxes by half a pixel only since opset 16."""

_POOL = (_other_pool, "onnx.reference mistakes dilations with auto_pad, and windows that ceil_mode adds, when pooling")

_COARSE: Mapping[str, Callable[[Call], bool]] = {"Gelu": _dtype("float64")}
"""Calls that the evaluator computes by a function body whose constants are of float32. ONNX Runtime does the same."""

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
    "Loop": (
        lambda call: not call.has(1) or call.outputs > len(call.inputs) - 2,
        "onnx.reference never enters a Loop without a condition, and stacks the rows of others with numpy.vstack",
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
    "LRN": (
        lambda call: call.operand(0).shape[0] != call.operand(0).shape[1],
        "onnx.reference goes over the batch of LRN instead of its channels (onnx#7805)",
    ),
    "MaxPool": (_max_pool, "onnx.reference mistakes padding, Indices and integers of MaxPool"),
    "OneHot": (
        lambda call: call.operand(2).dtype in FLOATS,
        "onnx.reference computes off + (on - off) in OneHot, which rounds",
    ),
    **dict.fromkeys(
        ("RNN", "GRU", "LSTM"),
        (_recurrent, "onnx.reference ignores or mistakes activations, clip, input_forget, layout and sequence_lens"),
    ),
    "ReduceSumSquare": (_dtype("int32", "uint32"), "onnx.reference sums ReduceSumSquare of 32-bit integers in 64 bits"),
    "Shrink": (
        lambda call: call.operand(0).dtype in ("int64", "uint64") and call.facts().magnitude > 2**53,
        "onnx.reference computes Shrink of 64-bit integers in float64",
    ),
    "Shape": (
        lambda call: call.integer("end") < -call.operand(0).rank,
        "onnx.reference takes an end of Shape before the first axis for one counted from the back",
    ),
    "Unique": (lambda call: call.integer("sorted", 1) == 0, "onnx.reference sorts the values of Unique in any case"),
}
