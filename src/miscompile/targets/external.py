"""External data: a model whose initialisers are in a separate file (onnx.proto, `TensorProto.external_data`).

The worker writes these files, because the parent sends programs as bytes, and the files must be on the compiler's
machine. Only fields of the message are touched, which all releases of `onnx` have; its own functions for external data
differ between releases. Standalone scripts contain the text of this module from the imports on.
"""

import random
from collections.abc import Iterator
from typing import Any


def store(model: Any, path: str, seed: int, *, shapes_too: bool) -> None:  # noqa: ANN401 - a ModelProto
    """Write `model` to `path`, and its initialisers to another file, in an order and at offsets drawn by `seed`.

    Without `shapes_too`, constants that shape inference may read remain in the model. Changes `model`.
    """
    numbers = random.Random(seed)
    tensors = [tensor for tensor in initializers(model.graph) if tensor.raw_data]  # strings, for example, are not raw
    if not shapes_too:
        read = names_read(model.graph)
        whole = (6, 7)  # INT32 and INT64
        tensors = [t for t in tensors if len(t.dims) > 1 or (t.data_type not in whole and t.name not in read)]
    numbers.shuffle(tensors)
    with open(f"{path}.data", "wb") as file:
        for tensor in tensors:
            file.write(b"\xff" * numbers.choice((0, 0, 1, 4, -file.tell() % 4096)))
            location = path.rpartition("/")[2] + ".data"
            values = {"location": location, "offset": file.tell(), "length": len(tensor.raw_data)}
            for key, value in values.items():
                tensor.external_data.add(key=key, value=str(value))
            file.write(tensor.raw_data)
            tensor.ClearField("raw_data")
            tensor.data_location = 1  # EXTERNAL
    with open(path, "wb") as file:
        file.write(model.SerializeToString())


def bodies(graph: Any) -> Iterator[Any]:  # noqa: ANN401 - a GraphProto
    """Yield `graph` and all graphs inside it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from bodies(inner)


def initializers(graph: Any) -> Iterator[Any]:  # noqa: ANN401 - a GraphProto
    """Yield the initialisers of `graph` and of graphs inside it."""
    for body in bodies(graph):
        yield from body.initializer


def names_read(graph: Any) -> set[str]:  # noqa: ANN401 - a GraphProto
    """Return the names of operands that shape inference reads although they need not be integers."""
    readers = ("OneHot", "Range", "Resize", "Upsample")  # and functions, which may hold these
    nodes = [node for body in bodies(graph) for node in body.node if node.op_type in readers or node.domain]
    return {name for node in nodes for name in node.input}
