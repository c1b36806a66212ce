"""A model that holds another one several times: the members of a doubling series of one pattern.

Scripts contain these functions, so this module needs onnx alone.
"""

from collections.abc import Iterator

import onnx
from onnx import TensorProto, helper

PATTERNS = ("chain", "fan", "nest")
"""Copies one after the other; side by side with their outputs added up; each in a branch of the one before."""

DEEPEST = 24
"""Most copies in each other, because protobuf reads messages of at most 100 levels."""

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
_SMALL = 4096
"""Bytes of initialisers up to which every copy gets its own ones."""


def repeated(model: onnx.ModelProto, pattern: str, copies: int) -> onnx.ModelProto:
    """Return a model of `copies` copies of `model`, with the same inputs and outputs.

    What a copy reads from the one before replaces an input of the same floating-point type and shape; where no output
    fits, its largest element is added to an input. Raises ValueError where the model has no input to do that with.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    names = {value.name for value in graph.initializer}
    inputs = [value for value in graph.input if value.name not in names]
    if not any(_is_float(value) for value in inputs):
        raise ValueError("the model has no input of a floating-point type")
    own = sum(value.ByteSize() for value in graph.initializer) <= _SMALL
    shared = [] if own else list(graph.initializer)
    del graph.node[:], graph.value_info[:], graph.initializer[:]
    graph.initializer.extend(shared)
    if pattern == "nest":
        _nest(graph, model.graph, inputs, own, min(copies, DEEPEST))
    else:
        (_chain if pattern == "chain" else _fan)(graph, model.graph, inputs, own, copies)
    return result


def _chain(graph: onnx.GraphProto, part: onnx.GraphProto, inputs: list[onnx.ValueInfoProto], own: bool, n: int) -> None:
    names = {value.name: value.name for value in inputs}
    for number in range(n):
        last = number == n - 1
        made = _copy(graph, part, names, own, "" if last else f"c{number}_")
        if not last:
            names = _wired(graph, part, inputs, made, f"w{number}_")


def _fan(graph: onnx.GraphProto, part: onnx.GraphProto, inputs: list[onnx.ValueInfoProto], own: bool, n: int) -> None:
    first = next(value for value in inputs if _is_float(value))
    kind = first.type.tensor_type.elem_type
    sums: dict[str, str] = {}
    for number in range(n):
        moved, offset = f"w{number}_x", f"w{number}_offset"
        graph.initializer.append(helper.make_tensor(offset, kind, [], [number / 64]))
        graph.node.append(helper.make_node("Add", [first.name, offset], [moved]))
        names = {value.name: value.name for value in inputs} | {first.name: moved}
        made = _copy(graph, part, names, own, f"c{number}_")
        for output in part.output:
            before = sums.get(output.name)
            sums[output.name] = (
                made[output.name] if before is None or not _is_float(output) else f"w{number}_{output.name}"
            )
            if before is not None and _is_float(output):
                graph.node.append(helper.make_node("Add", [before, made[output.name]], [sums[output.name]]))
    for name, value in sums.items():
        graph.node.append(helper.make_node("Identity", [value], [name]))


def _nest(graph: onnx.GraphProto, part: onnx.GraphProto, inputs: list[onnx.ValueInfoProto], own: bool, n: int) -> None:
    names = {value.name: value.name for value in inputs}
    first = next(value for value in inputs if _is_float(value))
    body, prefix = graph, ""
    for number in range(n):
        made = _copy(body, part, names, own, f"c{number}_")
        if number == n - 1:
            for output in part.output:
                body.node.append(helper.make_node("Identity", [made[output.name]], [prefix + output.name]))
            return
        largest, holds = f"w{number}_largest", f"w{number}_holds"
        body.node.append(helper.make_node("ReduceMax", [names[first.name]], [largest], keepdims=0))
        body.node.append(helper.make_node("Cast", [largest], [holds], to=TensorProto.BOOL))
        names = _wired(body, part, inputs, made, f"v{number}_")
        inner = f"b{number}_"
        inside, beside = (
            helper.make_graph([], f"{inner}{side}", [], _named(part, inner + side)) for side in ("then", "else")
        )
        for output in part.output:
            beside.node.append(helper.make_node("Identity", [made[output.name]], [f"{inner}else{output.name}"]))
        choice = helper.make_node("If", [holds], [prefix + output.name for output in part.output])
        # The messages are filled in place, because a copy of every level would be quadratic.
        choice.attribute.extend(
            [onnx.AttributeProto(name="then_branch", type=5), onnx.AttributeProto(name="else_branch", type=5)]
        )
        body.node.append(choice)
        then, other = body.node[-1].attribute
        then.g.CopyFrom(inside)
        other.g.CopyFrom(beside)
        body, prefix = then.g, f"{inner}then"


def _named(part: onnx.GraphProto, prefix: str) -> list[onnx.ValueInfoProto]:
    """Return the outputs of `part` under other names."""
    found = []
    for output in part.output:
        value = onnx.ValueInfoProto()
        value.CopyFrom(output)
        value.name = prefix + output.name
        found.append(value)
    return found


def _wired(
    graph: onnx.GraphProto, part: onnx.GraphProto, inputs: list[onnx.ValueInfoProto], made: dict[str, str], prefix: str
) -> dict[str, str]:
    """Return the values that the next copy gets for its inputs, so that it depends on the one before."""
    names, free = {value.name: value.name for value in inputs}, list(part.output)
    for value in filter(_is_float, inputs):
        fitting = next((output for output in free if output.type.tensor_type == value.type.tensor_type), None)
        if fitting is not None:
            names[value.name] = made[fitting.name]
            free.remove(fitting)
    if any(name != value for name, value in names.items()):
        return names
    first, output = next(value for value in inputs if _is_float(value)), part.output[0]
    kind = first.type.tensor_type.elem_type
    number, largest, moved = (prefix + name for name in ("number", "largest", "moved"))
    graph.node.extend(
        [
            helper.make_node("Cast", [made[output.name]], [number], to=kind),
            helper.make_node("ReduceMax", [number], [largest], keepdims=0),
            helper.make_node("Add", [first.name, largest], [moved]),
        ]
    )
    return names | {first.name: moved}


def _is_float(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type in _FLOATS


def _copy(
    graph: onnx.GraphProto, part: onnx.GraphProto, names: dict[str, str], own: bool, prefix: str
) -> dict[str, str]:
    """Add the nodes of `part`, on the values `names` for its inputs; return what its outputs are called."""
    known = dict(names)
    known.update({value.name: prefix + value.name if own else value.name for value in part.initializer})
    for value in part.initializer if own else ():
        graph.initializer.add().CopyFrom(value)
        graph.initializer[-1].name = known[value.name]
    for node in part.node:
        graph.node.add().CopyFrom(node)
        _rename(graph.node[-1], known, prefix)
    return {output.name: known.get(output.name, output.name) for output in part.output}


def _rename(node: onnx.NodeProto, known: dict[str, str], prefix: str) -> None:
    """Rename what a node reads by `known`, and what it makes by `prefix`; bodies as well."""
    node.input[:] = [known.get(name, name) for name in node.input]
    known.update({name: prefix + name for name in node.output if name})
    node.output[:] = [known[name] if name else "" for name in node.output]
    node.name = prefix + node.name if node.name else ""
    for body in _bodies(node):
        inner = dict(known)
        for value in (*body.input, *body.initializer, *body.value_info):
            inner[value.name] = prefix + value.name
            value.name = inner[value.name]
        for deeper in body.node:
            _rename(deeper, inner, prefix)
        for value in body.output:
            value.name = inner.get(value.name, value.name)


def _bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
