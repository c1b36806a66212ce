"""Other ways to write a NodeProto: empty names at the end, default attributes, the order of attributes."""

import random
from typing import Any

import onnx

from miscompile.ops.registry import schema

_SPELLED = frozenset({onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT, onnx.AttributeProto.STRING})
"""Kinds of defaults that are spelled out: lists are not, because those of RNN, GRU and LSTM depend on the direction."""

_COUNTED = frozenset({"SplitToSequence"})
"""Operators whose shape inference in onnx (1.23) asks how many operands are written, be the last one empty or not."""


def change_operands(node: onnx.NodeProto, opset: int, rng: random.Random) -> None:
    """Strip the empty names at the end of `node`'s operands and results, or write some for operands left out.

    Names for results are not added: some operators have another meaning when more of them are written.
    """
    known = schema(node.op_type, opset, "" if node.domain == "ai.onnx" else node.domain)
    if known is None:
        return
    for names, least in ((node.input, 0), (node.output, 1)):
        while len(names) > least and not names[-1]:
            del names[-1]
    if node.op_type in _COUNTED:
        return
    options = [formal.option.name for formal in known.inputs]
    if "Variadic" not in options and all(option == "Optional" for option in options[len(node.input) :]):
        node.input.extend([""] * rng.randint(0, max(0, len(options) - len(node.input))))


def change_attributes(node: onnx.NodeProto, opset: int, rng: random.Random) -> None:
    """Spell out the defaults of `node`, or leave out what equals them, and shuffle its attributes."""
    known = schema(node.op_type, opset, "" if node.domain == "ai.onnx" else node.domain)
    if known is None:
        return
    defaults = {
        name: formal.default_value for name, formal in known.attributes.items() if formal.default_value.type in _SPELLED
    }
    given = list(node.attribute)
    if rng.random() < 0.5:
        there = {attribute.name for attribute in given}
        given += [default for name, default in sorted(defaults.items()) if name not in there]
    else:
        given = [attribute for attribute in given if not _says(attribute, defaults.get(attribute.name))]
    copies = [_copy(attribute) for attribute in rng.sample(given, len(given))]
    del node.attribute[:]
    node.attribute.extend(copies)


def _says(attribute: onnx.AttributeProto, default: Any) -> bool:  # noqa: ANN401 - a protobuf message or None
    """Tell whether `attribute` says what it means where it is left out."""
    if default is None or attribute.ref_attr_name or attribute.type != default.type:
        return False
    return bool((attribute.i, attribute.f, attribute.s) == (default.i, default.f, default.s))


def _copy(attribute: onnx.AttributeProto) -> onnx.AttributeProto:
    copied = onnx.AttributeProto()
    copied.CopyFrom(attribute)
    return copied
