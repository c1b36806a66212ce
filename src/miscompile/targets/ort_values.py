"""Calls of an ONNX Runtime session on arrays, also of element types that numpy lacks; standalone scripts contain the
functions that they need.

Several targets execute models with ONNX Runtime: the compiler itself, and the optimisers, whose results it runs.
"""

import ctypes
import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnxruntime.capi import _pybind_state as native

WIDTHS = {16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2, 27: 6, 28: 6}
"""Bits of an element for the types that numpy lacks, by their numbers in onnx.TensorProto, from BFLOAT16 on."""


@cache
def saturates() -> bool:
    """Tell whether this processor sums products of bytes in 16 bits by default, as x86 without VNNI does."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            told = file.read()
    except OSError:
        return False
    return "avx2" in told and "vnni" not in told


def run_arrays(
    session: native.InferenceSession, outputs: Sequence[str], feed: Mapping[str, NDArray[np.generic]]
) -> list[NDArray[np.generic] | None]:
    """Run on one feed; return the outputs of these names, None for a missing one."""
    found: list[NDArray[np.generic] | None] = session.run(outputs, feed, None)
    return found


def run_words(
    session: native.InferenceSession,
    outputs: Sequence[str],
    feed: Mapping[str, NDArray[np.generic]],
    types: Mapping[str, int],
) -> list[tuple[int, NDArray[np.generic]] | None]:
    """Run on a feed with element types that numpy lacks; their elements are words (one per element, in the low
    bits).

    `types` are the numbers of the inputs' types in onnx.TensorProto, where numpy lacks them. Return for each output the
    number of its type, and its elements or words; None for one that is missing.
    """
    memory = {name: packed(array, WIDTHS.get(types.get(name, 0), 0)) for name, array in feed.items()}
    values = {name: to_value(array, types.get(name)) for name, array in memory.items()}  # they are views of `memory`
    results = session.run_with_ort_values(values, outputs, None)
    return [from_value(value) if value.has_value() else None for value in results]


def packed(words: NDArray[np.generic], bits: int) -> NDArray[np.generic]:
    """Return elements in a session's memory layout: narrow ones are packed in the first bytes."""
    words = np.require(words, requirements="C")
    if not 0 < bits < 8:
        return words
    lanes = np.unpackbits(words.view(np.uint8).reshape(-1, 1), axis=1, count=bits, bitorder="little")
    stream = np.packbits(lanes, bitorder="little")
    return np.concatenate([stream, np.zeros(words.size - stream.size, np.uint8)]).reshape(words.shape)


def to_value(array: NDArray[np.generic], kind: int | None) -> native.OrtValue:
    """Wrap an input; `kind` is the number of its element type if numpy lacks the type."""
    if kind is None:
        return ort.OrtValue.ortvalue_from_numpy(array)._ortvalue
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, kind)._ortvalue


def from_value(value: native.OrtValue) -> tuple[int, NDArray[np.generic]]:
    """Return the number of an output's element type, and its elements; the binding does not convert foreign ones."""
    kind, shape = value.element_type(), tuple(value.shape())
    if kind not in WIDTHS:
        return kind, np.asarray(value.numpy())
    bits, count = WIDTHS[kind], math.prod(shape)
    data = ctypes.string_at(value.data_ptr(), -(-count * bits // 8)) if count else b""
    if bits >= 8:
        return kind, np.frombuffer(data, f"u{bits // 8}").reshape(shape)
    lanes = np.unpackbits(np.frombuffer(data, np.uint8), count=count * bits, bitorder="little").reshape(count, bits)
    return kind, np.packbits(lanes, axis=1, bitorder="little").reshape(shape)
