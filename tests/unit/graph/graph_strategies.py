"""Random small models for laws: graphs of elementwise nodes with bodies, constants of every type, odd names."""

import numpy as np
from hypothesis import strategies as st

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor
from miscompile.graph.edges import toposort
from miscompile.graph.model import (
    Attribute,
    Function,
    Graph,
    MapType,
    Model,
    Node,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    TensorType,
    ValueInfo,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
names = st.one_of(st.sampled_from(["x", "y.1", "/a/b", "a b", 'q"', "inf", "_", "0", "é", "#"]), texts.filter(bool))
dims = st.one_of(st.integers(-1, 9), st.none(), st.sampled_from(["N", "batch size", "inf", "x.y"]))
tensor_types = st.builds(TensorType, st.sampled_from(sorted(DTYPES)), st.none() | st.lists(dims, max_size=3).map(tuple))
value_types = st.recursive(
    st.one_of(tensor_types, tensor_types.map(lambda t: SparseTensorType(t.dtype, t.shape))),
    lambda inner: st.one_of(
        inner.map(SequenceType), inner.map(OptionalType), st.builds(MapType, st.just("int64"), inner)
    ),
    max_leaves=3,
)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Any bits of any type (narrow elements stay within their bits)."""
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    count = int(np.prod(shape, dtype=int))
    if dtype == "string":
        array = np.empty(count, object)
        array[:] = draw(st.lists(texts | st.just("\udcff"), min_size=count, max_size=count))
        return Tensor(dtype, array.reshape(shape))
    info = DTYPES[dtype]
    data = draw(st.binary(min_size=count * info.storage.itemsize, max_size=count * info.storage.itemsize))
    array = np.frombuffer(data, info.storage).reshape(shape)
    if info.bits < 8:
        array = array & np.uint8((1 << info.bits) - 1)
    if dtype == "bool":
        array = array.view(np.uint8) % 2 == 1
    return Tensor(dtype, array)


sparse_tensors = st.builds(SparseTensor, tensors(), tensors(), st.lists(st.integers(0, 9), max_size=2).map(tuple))
floats = st.floats(width=32, allow_nan=True)
ints = st.integers(-(2**63), 2**63 - 1)
_SINGLES = {
    "int": ints,
    "float": floats,
    "string": texts | st.just("\udc80"),
    "tensor": tensors(),
    "sparse": sparse_tensors,
    "type": value_types,
}


@st.composite
def attributes(draw: st.DrawFn, bodies: bool = True) -> Attribute:
    kind = draw(st.sampled_from([*_SINGLES, *(("graph",) if bodies else ()), "ref"]))
    if kind == "ref":
        return Attribute("ref", draw(names), draw(st.sampled_from(["int", "floats", None])))
    single = graphs(depth=1) if kind == "graph" else _SINGLES[kind]
    if draw(st.booleans()):
        return Attribute(f"{kind}s", tuple(draw(st.lists(single, max_size=3))))  # type: ignore[arg-type]
    return Attribute(kind, draw(single))


@st.composite
def graphs(draw: st.DrawFn, depth: int = 0) -> Graph:
    """A graph whose text and bytes are to survive; what its operators mean does not matter."""
    inputs = draw(st.lists(names, max_size=3, unique=True))
    constants = draw(st.dictionaries(names, tensors(), max_size=2))
    sparse = draw(st.dictionaries(names.filter(lambda name: name not in constants), sparse_tensors, max_size=1))
    known = [*inputs, *constants, ""]
    nodes = []
    for _ in range(draw(st.integers(0, 3))):
        uses = tuple(draw(st.lists(st.sampled_from(known), max_size=3)))
        makes = tuple(draw(st.lists(names | st.just(""), max_size=2)))
        known += [name for name in makes if name]
        given = draw(st.dictionaries(texts.filter(bool), attributes(bodies=depth == 0), max_size=2))
        nodes.append(Node(draw(names), uses, makes, given, draw(texts), draw(texts), draw(texts)))
    infos = [ValueInfo(name, draw(st.none() | value_types)) for name in inputs]
    outputs = [ValueInfo(name, draw(st.none() | value_types)) for name in dict.fromkeys(known[-3:]) if name]
    types = draw(st.dictionaries(st.sampled_from([name for name in known if name] or ["t"]), value_types, max_size=2))
    return Graph(draw(texts), tuple(infos), tuple(outputs), tuple(nodes), constants, sparse, types)


@st.composite
def any_models(draw: st.DrawFn) -> Model:
    """A model that need not be valid."""
    opsets = draw(st.dictionaries(texts, st.integers(1, 30), max_size=2))
    functions = []
    if draw(st.booleans()):
        body = draw(graphs(depth=1))
        defaults = draw(st.dictionaries(names, attributes(bodies=False), max_size=1))
        functions.append(
            Function(
                draw(texts),
                draw(names),
                tuple(info.name for info in body.inputs),
                tuple(info.name for info in body.outputs),
                body.nodes,
                opsets,
                tuple(draw(st.lists(names, max_size=2, unique=True))),
                defaults,
                draw(texts),
                body.types,
            )
        )
    return Model(draw(graphs()), opsets, tuple(functions), draw(st.integers(1, 13)))


@st.composite
def valid_models(draw: st.DrawFn) -> Model:
    """A model that onnx accepts: elementwise float nodes, shared constants, dead nodes, an If that captures."""
    sized = TensorType("float32", (2, 3))
    known = ["x0", "x1", "w0", "w1"]
    nodes: list[Node] = []
    for place in range(draw(st.integers(1, 8))):
        op = draw(st.sampled_from(["Add", "Sub", "Relu", "Neg", "LeakyRelu", "If"]))
        first, second = draw(st.sampled_from(known)), draw(st.sampled_from(known))
        made = f"v{place}"
        if op == "If":
            nodes.append(_branching(first, second, made))
        elif op in ("Add", "Sub"):
            nodes.append(Node(op, (first, second), (made,)))
        elif op == "LeakyRelu":
            nodes.append(Node(op, (first,), (made,), {"alpha": Attribute("float", draw(st.sampled_from([0.5, 0.25])))}))
        else:
            nodes.append(Node(op, (first,), (made,), name=f"node{place}"))
        known.append(made)
    outputs = dict.fromkeys(draw(st.lists(st.sampled_from(known[4:]), min_size=1, max_size=3)))
    constants = {name: Tensor("float32", np.full((2, 3), draw(st.integers(0, 1)), np.float32)) for name in ("w0", "w1")}
    inputs = (*(ValueInfo(name, sized) for name in ("x0", "x1")), ValueInfo("cond", TensorType("bool", ())))
    return Model(
        Graph("g", inputs, tuple(ValueInfo(name, sized) for name in outputs), tuple(nodes), constants), {"": 18}
    )


def _branching(first: str, second: str, made: str) -> Node:
    def body(name: str, op: str) -> Graph:
        inner = f"{made}_{name}"
        return Graph(name, (), (ValueInfo(inner, None),), (Node(op, (first, second), (inner,)),))

    given = {
        "then_branch": Attribute("graph", body("yes", "Sub")),
        "else_branch": Attribute("graph", body("no", "Add")),
    }
    return Node("If", ("cond",), (made,), given)


@st.composite
def reordered(draw: st.DrawFn, model: Model) -> Model:
    """The same model with independent nodes, initialisers and attributes in another order."""
    graph = model.graph
    order = draw(st.permutations(range(len(graph.nodes))))
    constants = draw(st.permutations(list(graph.initializers.items())))
    shuffled = Graph(
        graph.name,
        graph.inputs,
        graph.outputs,
        tuple(graph.nodes[place] for place in order),
        dict(constants),
        graph.sparse_initializers,
        graph.types,
    )
    return Model(toposort(shuffled), model.opsets, model.functions, model.ir_version)
