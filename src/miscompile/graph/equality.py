"""Equality of models, and the first place where two models differ."""

import dataclasses
import struct
from collections.abc import Mapping

from miscompile.core.tensor import Tensor
from miscompile.graph.model import Model


def same_model(first: Model, second: Model) -> bool:
    """Tell whether both models are equal, names included; see `difference`."""
    return difference(first, second) is None


def difference(first: object, second: object, where: str = "model") -> str | None:
    """Return one line that names the first place where two models, or parts of models, differ; None if they are
    equal.

    Tensors are compared by their bits, float attributes as the float32 numbers that ONNX stores (NaN payloads and
    the sign of zero count). The order of mappings (attributes, initialisers, types, opset imports) is ignored; every
    other order counts.
    """
    if isinstance(first, float) and isinstance(second, float):
        return None if float_bits(first) == float_bits(second) else f"{where}: {first!r} against {second!r}"
    if type(first) is not type(second) and not (isinstance(first, Mapping) and isinstance(second, Mapping)):
        return f"{where}: {_brief(first)} against {_brief(second)}"
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return None if first.same(second) else f"{where}: {_brief(first)} against {_brief(second)}"
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return _of_mappings(first, second, where)
    if isinstance(first, tuple) and isinstance(second, tuple):
        return _of_tuples(first, second, where)
    if dataclasses.is_dataclass(first):
        for field in dataclasses.fields(first):
            found = difference(getattr(first, field.name), getattr(second, field.name), f"{where}.{field.name}")
            if found:
                return found
        return None
    return None if first == second else f"{where}: {_brief(first)} against {_brief(second)}"


def float_bits(value: float) -> int:
    """Return the bits of `value` as a float32, as ONNX stores float attributes; a number too large becomes infinity."""
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return int.from_bytes(packed, "little")


def _of_mappings(first: Mapping[str, object], second: Mapping[str, object], where: str) -> str | None:
    for name in first.keys() ^ second.keys():
        return f"{where}: only {'the first' if name in first else 'the second'} has {name!r}"
    for name, value in first.items():
        found = difference(value, second[name], f"{where}[{name!r}]")
        if found:
            return found
    return None


def _of_tuples(first: tuple[object, ...], second: tuple[object, ...], where: str) -> str | None:
    if len(first) != len(second):
        return f"{where}: {len(first)} items against {len(second)}"
    for index, (one, other) in enumerate(zip(first, second, strict=True)):
        found = difference(one, other, f"{where}[{index}]")
        if found:
            return found
    return None


def _brief(value: object) -> str:
    if isinstance(value, Tensor):
        with_values = value.array.size <= 8
        return f"{value.dtype}{list(value.shape)}" + (f" {value.array.tolist()}" if with_values else "")
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
