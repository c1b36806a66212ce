"""Sliding windows as ONNX defines them, for the lowerings of convolutions and pools of every framework."""

# ruff: noqa: ANN401 - tensors of any framework

from typing import Any


def margins(x: Any, kernel: Any, strides: Any, dilations: Any, pads: Any, auto_pad: str) -> Any:
    """Return the padding (before, after) of each spatial axis, computed where `auto_pad` asks for it."""
    count = len(kernel)
    if auto_pad == "VALID" or (auto_pad == "NOTSET" and pads is None):
        return [(0, 0)] * count
    if auto_pad == "NOTSET":
        return [(pads[i], pads[i + count]) for i in range(count)]
    found = []
    for size, k, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True):
        whole = max(((size + s - 1) // s - 1) * s + d * (k - 1) + 1 - size, 0)
        less = whole // 2
        found.append((less, whole - less) if auto_pad == "SAME_UPPER" else (whole - less, less))
    return found
