"""Signals: DFT, STFT and the window generators.

Sources: the operator pages of the ONNX documentation.
"""

import math

import numpy as np

from miscompile.base.dtypes import DTYPES, FLOATS
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.model import Node, TensorType
from miscompile.ops.facts import Bounds, Exactness
from miscompile.ops.rounding import rounded
from miscompile.ops.spec import Call, Operand, OpSpec, RunOperands, Shape, Site
from miscompile.ops.structural import scalar, signed

_FAMILY = "signal"
_INDEX = ("int64", "int32")


def _sample_dft(site: Site) -> Call:
    """Draw a DFT along any axis but the last, which holds real or complex parts. One-sided ones are real, forward."""
    rng = site.rng

    def draw() -> Shape:
        sizes = [rng.randint(1, 4) for _ in range(rng.choice((1, 1, 2)))]
        return (*sizes, rng.randint(1, 8), rng.choice((1, 2)))

    x = site.operand(ranks=(3, 5), fits=lambda shape: 0 not in shape and shape[-1] in (1, 2), draw=draw)
    axis = rng.randrange(1, x.rank - 1)
    real = x.shape[-1] == 1
    chosen = rng.choice((None, "inverse", "onesided" if real else None))
    mode: dict[str, PlainValue | None] = {chosen: 1} if chosen else {}
    length = None
    if rng.random() < 0.4:
        length = scalar(site, rng.randint(1, 2 * x.shape[axis]), rng.choice(_INDEX))
    if site.opset < 20:
        call = Call("DFT", (x, length), attributes({**mode, "axis": signed(rng, axis, x.rank) if axis != 1 else None}))
    else:
        place = scalar(site, signed(rng, axis, x.rank)) if axis != x.rank - 2 or rng.random() < 0.5 else None
        call = Call("DFT", (x, length, place), attributes(mode))
    kept = list(call.inputs)
    while kept[-1] is None:
        kept.pop()
    return Call("DFT", tuple(kept), call.attributes)


def _transform(dtype: str, largest: float, terms: int) -> Bounds:
    """Bounds of the parts of a sum of `terms` complex numbers whose parts reach `largest`, each turned by an angle."""
    total = terms * largest * math.sqrt(2)
    return rounded(dtype, -total, total, terms=4 * terms, partial=total)


def _bounds_dft(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds by the longest axis; an inverse divides by the length, which only makes the result smaller."""
    shape = call.operand(0).shape
    longest = max(shape[:-1])
    return (_transform(types[0].dtype, call.facts().magnitude, longest),)


def _defined_dft(call: Call) -> bool:
    shape = call.operand(0).shape
    return 0 not in shape and not (call.integer("onesided") and (shape[-1] != 1 or call.integer("inverse")))


def _sample_stft(site: Site) -> Call:
    """Draw an STFT whose frames fit into the signal, with a window, a frame length, or both."""
    rng = site.rng

    def draw() -> Shape:
        return (rng.randint(1, 3), rng.randint(4, 16), 1 if rng.random() < 0.7 else 2)

    def fits(shape: Shape) -> bool:
        return shape[0] > 0 and shape[1] >= 2 and shape[2] in (1, 2)

    x = site.operand(ranks=(3, 3), fits=fits, draw=draw)
    length, kind = rng.randint(2, min(8, x.shape[1])), rng.choice(_INDEX)
    step = scalar(site, rng.randint(1, length), kind)
    window = site.weight((length,)) if rng.random() < 0.7 else None
    inputs: list[Operand | None] = [x, step, window]
    if window is None or rng.random() < 0.5:
        inputs.append(scalar(site, length, kind))
    # Never left out: onnx's inference takes its default for 0, its definition says 1.
    onesided = rng.choice((0, 1)) if x.shape[2] == 1 else 0
    return Call("STFT", tuple(inputs), attributes({"onesided": onesided}))


def _frame(call: Call) -> int:
    """Return the frame length: that of the window, or input 3."""
    return call.operand(2).shape[0] if call.has(2) else _number(call, 3)


def _number(call: Call, index: int) -> int:
    value = call.operand(index).value
    return 0 if value is None else int(value.reshape(-1)[0])


def _bounds_stft(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    largest = call.facts().magnitude * (max(1.0, call.facts(2).magnitude) if call.has(2) else 1.0)
    return (_transform(types[0].dtype, largest, _frame(call)),)


def _defined_stft(call: Call) -> bool:
    """Guard: at least one whole frame, a positive step, and no one-sided result of a complex signal."""
    shape = call.operand(0).shape
    whole = 1 <= _frame(call) <= shape[1] and _number(call, 1) > 0
    return whole and not (call.integer("onesided", 1) and shape[2] == 2)


def _sample_window(site: Site, op: str) -> Call:
    rng = site.rng
    found: dict[str, PlainValue | None] = {"periodic": rng.choice((None, 0, 1))}
    if site.dtype != "float32" or rng.random() < 0.3:
        found["output_datatype"] = DTYPES[site.dtype].code
    return Call(op, (site.known(np.array(rng.randint(2, 16), rng.choice(_INDEX))),), attributes(found))


def _window(op: str) -> OpSpec:
    """Spec of a generator of a window of two elements or more; one element would divide by zero if not periodic."""

    def bounds(_: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
        return (rounded(types[0].dtype, 0.0, 1.0, terms=8),)

    def defined(call: Call) -> bool:
        return _number(call, 0) >= 2

    return OpSpec(
        op, FLOATS, lambda site: _sample_window(site, op), bounds, Exactness.TRANSCENDENTAL, _FAMILY, defined,
        since=17, main=~0, structural={"size": (0,)},
    )  # fmt: skip


_ROUGH = Exactness.TRANSCENDENTAL


def _page_signal(call: Call) -> bool:
    """A signal's last axis holds real numbers, or pairs; nothing is empty."""
    shape = call.operand(0).shape
    fits = len(shape) == 3 if call.op == "STFT" else len(shape) >= 2
    return fits and 0 not in shape and shape[-1] in (1, 2)


def _sounds(node: Node, value: RunOperands) -> bool:
    """A signal has at least one element."""
    length = value(1)
    return length is None or not (length.array < 1).any()


SPECS = (
    OpSpec(
        "DFT",
        FLOATS,
        _sample_dft,
        _bounds_dft,
        _ROUGH,
        _FAMILY,
        _defined_dft,
        since=17,
        well_formed=_page_signal,
        defined_on=_sounds,
        structural={"shape": (2,), "size": (1,)},
        noise=16,
    ),
    OpSpec(
        "STFT",
        FLOATS,
        _sample_stft,
        _bounds_stft,
        _ROUGH,
        _FAMILY,
        _defined_stft,
        since=17,
        well_formed=_page_signal,
        structural={"size": (1, 3)},
        noise=16,
    ),
    *(_window(op) for op in ("HannWindow", "HammingWindow", "BlackmanWindow")),
)
