"""Rules of operators that onnx's own shape inference does not enforce. A model that breaks one is invalid."""

from miscompile.targets.toy.ir import Code, ToyCall, ToyError, ToyShape


def check_operands(code: Code, call: ToyCall) -> None:
    """Raise ToyError when the known shapes of `call`'s operands break its operator's rules."""
    shapes = [code.shape(name) if name else None for name in call.inputs]
    fault = ""
    if call.op == "Conv":
        fault = _conv(call, shapes)
    elif call.op == "Gemm" and len(shapes) > 2:
        result = code.shape(call.out)
        if shapes[2] is not None and result is not None and not broadcasts_into(shapes[2], result):
            fault = f"C {list(shapes[2])} does not broadcast into {list(result)}"
    elif call.op == "Clip" and any(shape is not None and any(size != 1 for size in shape) for shape in shapes[1:]):
        fault = "a bound has several elements"
    elif call.op == "Transpose":
        fault = _transpose(call, shapes[0])
    if fault:
        raise ToyError(f"toy cannot read this model: {call.op}: {fault}")


def _transpose(call: ToyCall, shape: ToyShape | None) -> str:
    perm = call.get("perm")
    if perm is None or shape is None or sorted(perm) == list(range(len(shape))):
        return ""
    return f"perm {list(perm)} is no permutation of {len(shape)} axes"


def _conv(call: ToyCall, shapes: list[ToyShape | None]) -> str:
    """Channels of the operand are those of the weights times the groups; a bias has one element per output channel."""
    data, weight = shapes[:2]
    bias = shapes[2] if len(shapes) > 2 else None
    if data is None or weight is None:
        return ""
    group = call.get("group", 1)
    if len(data) != len(weight) or group < 1 or data[1] != weight[1] * group or weight[0] % group:
        return f"operand {list(data)} does not fit weights {list(weight)} in {group} groups"
    return "" if bias in (None, weight[:1]) else f"bias {list(bias or ())} does not fit weights {list(weight)}"


def broadcasts_into(small: ToyShape, large: ToyShape) -> bool:
    """Tell whether a value of shape `small` can be broadcast to `large`."""
    return len(small) <= len(large) and all(a in (1, b) for a, b in zip(small[::-1], large[::-1], strict=False))
