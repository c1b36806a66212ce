"""Construction of models, from nothing or from an existing model, which is not changed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.edges import all_names, captured, defined, toposort
from miscompile.graph.model import Function, Graph, Model, Node, SparseTensor, ValueInfo, ValueType
from miscompile.graph.prune import function_key
from miscompile.graph.rename import NameSupply, redirect, refresh

_EMPTY = Graph("main", (), (), ())


class Builder:
    """A mutable draft of a model.

    The builder gives names that no value of the model has, in bodies neither. Nodes may be added in any order,
    because `build` sorts them. The builder does not validate the model; `check` does that.
    """

    def __init__(self, model: Model | None = None, *, opset: int = 21, ir_version: int = 10) -> None:
        base = model or Model(_EMPTY, {"": opset}, (), ir_version)
        graph = base.graph
        self._base = base
        self._names = NameSupply(all_names(graph))
        self._opsets = dict(base.opsets)
        self._functions = {function_key(function): function for function in base.functions}
        self._inputs = {info.name: info.type for info in graph.inputs}
        self._outputs = list(graph.outputs)
        self._initializers = dict(graph.initializers)
        self._sparse = dict(graph.sparse_initializers)
        self._types = dict(graph.types)
        self._nodes = list(graph.nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The current nodes, in the order in which they were added."""
        return tuple(self._nodes)

    @property
    def outputs(self) -> tuple[ValueInfo, ...]:
        """The current graph outputs."""
        return tuple(self._outputs)

    def fresh(self, base: str = "v") -> str:
        """Return and reserve a name that no value of the model has; `base` itself if it is free."""
        return self._names.fresh(base)

    def add_input(self, value_type: ValueType, name: str = "x") -> str:
        """Add a graph input and return its name, which is `name` unless another value has it."""
        fresh = self.fresh(name)
        self._inputs[fresh] = value_type
        return fresh

    def add_initializer(self, value: Tensor | SparseTensor, name: str = "c") -> str:
        """Add an initialiser and return its name, which is `name` unless another value has it."""
        fresh = self.fresh(name)
        if isinstance(value, Tensor):
            self._initializers[fresh] = value
        else:
            self._sparse[fresh] = value
        return fresh

    def add_node(
        self,
        op: str,
        inputs: Sequence[str],
        given: Mapping[str, PlainValue | None] | None = None,
        *,
        outputs: int | Sequence[str] = 1,
        domain: str = "",
        name: str = "",
        overload: str = "",
    ) -> tuple[str, ...]:
        """Add a node with the attributes `given` and return the names of its outputs.

        `outputs` is their number, or their exact names ("" leaves one out). Raises ModelError when a name is taken.
        """
        if isinstance(outputs, int):
            made = tuple(self.fresh(op.lower()) for _ in range(outputs))
        else:
            made = tuple(self._names.claim(output) if output else "" for output in outputs)
        self._nodes.append(Node(op, tuple(inputs), made, attributes(given or {}), domain, name, overload))
        return made

    def add_graph(self, graph: Graph, inputs: Sequence[str]) -> tuple[str, ...]:
        """Add a copy of `graph` that reads `inputs` instead of its own inputs; return the names of the copy's
        outputs.

        Every value of the copy gets a fresh name. Values that `graph` captures must be in this model. Raises
        ModelError when the number of inputs is wrong.
        """
        if len(inputs) != len(graph.inputs):
            raise ModelError(f"the graph to add takes {len(graph.inputs)} inputs, not {len(inputs)}")
        names = {info.name: actual for info, actual in zip(graph.inputs, inputs, strict=True)}
        constants: Mapping[str, Tensor | SparseTensor] = {**graph.initializers, **graph.sparse_initializers}
        for name, value in constants.items():
            if name not in names:  # otherwise it is the default of an input, and the caller provides that input
                names[name] = self.add_initializer(value, name)
        for node in graph.nodes:
            names.update((name, self.fresh(name)) for name in node.outputs if name)
        self._nodes.extend(refresh(graph.nodes, names, self._names.fresh))
        inner = defined(graph).difference(info.name for info in graph.inputs)
        self._types.update((names[name], known) for name, known in graph.types.items() if name in inner)
        return tuple(names.get(info.name, info.name) for info in graph.outputs)

    def add_output(self, value: str, value_type: ValueType | None = None) -> None:
        """Append `value` to the graph outputs. Raises ModelError when it already is one."""
        if any(info.name == value for info in self._outputs):
            raise ModelError(f"{value!r} is already an output")
        self._outputs.append(ValueInfo(value, value_type))

    def add_function(self, function: Function) -> None:
        """Add a model-local function and import its domain. Raises ModelError when the model already has it."""
        key = function_key(function)
        if key in self._functions:
            raise ModelError(f"there is already a function {function.name!r} in domain {function.domain!r}")
        self._functions[key] = function
        self._opsets.setdefault(function.domain, 1)

    def set_opset(self, domain: str, version: int) -> None:
        """Import `version` of the operators of `domain`."""
        self._opsets[domain] = version

    def set_type(self, value: str, value_type: ValueType | None) -> None:
        """Declare the type of an inner value; None removes the declaration."""
        if value_type is None:
            self._types.pop(value, None)
        else:
            self._types[value] = value_type

    def replace_uses(self, old: str, new: str, *, keep: Collection[str] = (), outputs: bool = False) -> None:
        """Replace every use of `old` by `new`, in captures too.

        The producer of `new` and the producers of the values in `keep` still use `old`, so that `new` may be
        computed from `old`. With `outputs`, a graph output `old` becomes `new` (its name changes); otherwise graph
        outputs do not change.
        """
        spared = {new, *keep}
        self._nodes = [
            node if spared.intersection(node.outputs) else redirect(node, {old: new}) for node in self._nodes
        ]
        if outputs:
            self._outputs = [ValueInfo(new, info.type) if info.name == old else info for info in self._outputs]

    def node_of(self, value: str) -> Node:
        """Return the producer of `value`. Raises ModelError when it has none."""
        return self._nodes[self._place(value)]

    def replace_node(self, value: str, node: Node) -> None:
        """Replace the producer of `value` by `node`. Raises ModelError when it has none.

        New output names of `node` must come from `fresh`.
        """
        self._nodes[self._place(value)] = node

    def remove_node(self, value: str) -> None:
        """Remove the producer of `value` and the types of its outputs. Raises ModelError when it has none."""
        for name in self._nodes.pop(self._place(value)).outputs:
            self._types.pop(name, None)

    def remove_input(self, name: str) -> None:
        """Remove a graph input; its default remains as an initialiser. Raises ModelError when there is no such
        input."""
        if name not in self._inputs:
            raise ModelError(f"there is no input {name!r}")
        del self._inputs[name]

    def remove_initializer(self, name: str) -> None:
        """Remove an initialiser. Raises ModelError when there is no such initialiser."""
        if name not in self._initializers and name not in self._sparse:
            raise ModelError(f"there is no initializer {name!r}")
        self._initializers.pop(name, None)
        self._sparse.pop(name, None)
        self._types.pop(name, None)

    def remove_output(self, value: str) -> None:
        """Remove `value` from the graph outputs. Raises ModelError when it is not one."""
        kept = [info for info in self._outputs if info.name != value]
        if len(kept) == len(self._outputs):
            raise ModelError(f"there is no output {value!r}")
        self._outputs = kept

    def build(self) -> Model:
        """Return the model. Raises ModelError when a used value is not defined or nodes form a cycle."""
        graph = Graph(
            self._base.graph.name,
            tuple(ValueInfo(name, value_type) for name, value_type in self._inputs.items()),
            tuple(self._outputs),
            tuple(self._nodes),
            dict(self._initializers),
            dict(self._sparse),
            dict(self._types),
        )
        for name in sorted(captured(graph)):
            raise ModelError(f"{name!r} is used but nothing defines it")
        return replace(
            self._base, graph=toposort(graph), opsets=dict(self._opsets), functions=tuple(self._functions.values())
        )

    def _place(self, value: str) -> int:
        for place, node in enumerate(self._nodes):
            if value and value in node.outputs:
                return place
        raise ModelError(f"no node makes {value!r}")
