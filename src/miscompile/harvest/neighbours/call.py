"""An instance as named parameters, and a change to some of them.

A value of None means that the parameter is left out. Two parameters are not the operator's own: which results a node
names, and which operands its program is fed with.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor
from miscompile.harvest.constraints.generate import Constraint, Operation, assembled, values_of
from miscompile.instances.instance import OPERAND_POLICIES, Instance, OperandPolicy, Parent
from miscompile.instances.values import Drawn, Held, Value, tensor_of

OUTPUTS = "(outputs)"
"""The name of the parameter that says which results a node names, as a tuple of truth values."""

OPERANDS = "(operands)"
"""The name of the parameter that says which operands are fed."""

NamedParameters = Mapping[str, Value]
"""NamedParameters by name; None for one that is left out."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An operator whose neighbours are wanted. `outputs` tells for each result of a node whether it is optional."""

    operation: Operation
    outputs: tuple[bool, ...] = ()

    @property
    def node(self) -> bool:
        """Tell whether it is an operator of ONNX."""
        return self.operation.form == "node"


def subjects_of(operations: Iterable[Operation], tests: Iterable[Instance]) -> Iterator[tuple[Subject, list[Instance]]]:
    """Yield the operations of torch or Keras that tests use in their form, with the instances of each."""
    found: dict[tuple[str, str], list[Instance]] = {}
    for one in tests:
        if one.source in ("tests", "database"):
            found.setdefault((one.api, one.form), []).append(one)
    for operation in operations:
        known = found.get((operation.api, operation.form))
        if known:
            yield Subject(operation), known


@dataclass(frozen=True, slots=True)
class Variation:
    """New values of some parameters, and the difference in words, for a report."""

    values: NamedParameters
    words: str


@dataclass(frozen=True, slots=True)
class StepView:
    """What a step sees: the operator, an instance's parameters, those of other instances of it, and a random stream."""

    subject: Subject
    values: NamedParameters
    siblings: tuple[NamedParameters, ...]
    draw: random.Random
    constraints: Mapping[str, Constraint] = field(init=False)
    """The constraint on each parameter, also on further operands of a variadic one."""

    def __post_init__(self) -> None:
        known = {one.name: one for one in self.subject.operation.parameters}
        further = {name: known[name.partition(" ")[0]] for name in self.values if _variadic(name)}
        object.__setattr__(self, "constraints", {**known, **further})

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that are given, by parameter."""
        return {name: tensor_of(value) for name, value in self.values.items() if isinstance(value, Held | Drawn)}

    def data(self) -> dict[str, Tensor]:
        """Return the tensors that are operated on: no texts, and none that describes others, such as axes and sizes."""
        return {
            name: value
            for name, value in self.tensors().items()
            if name in self.constraints
            and not describes(self.constraints[name])
            and DTYPES[value.dtype].kind != "string"
        }

    def rank(self) -> int:
        """Return the rank of the first tensor, 0 if there is none."""
        return next((len(value.shape) for value in self.tensors().values()), 0)

    def largest(self) -> int:
        """Return the greatest size of a dimension, 1 if there is none."""
        return max((size for value in self.data().values() for size in value.shape), default=1)


Step = Callable[[StepView], Iterator[Variation]]
"""One kind of step: yields the changes that lead to an instance's neighbours."""


def _variadic(name: str) -> bool:
    return " " in name


def describes(one: Constraint) -> bool:
    """Tell whether a tensor holds integers that describe other operands, such as axes, pads and a shape."""
    return one.place == "called" and one.ranks == (1,)


def is_tensor(one: Constraint) -> bool:
    """Tell whether a parameter takes a tensor."""
    return "tensor" in one.kinds


def parameters_of(subject: Subject, instance: Instance) -> dict[str, Value] | None:
    """Return an instance's parameters by name, None if they cannot be named (further positional ones of torch)."""
    operation = subject.operation
    if not subject.node:
        given = [one for one in operation.parameters if one.place == "given"]
        called = [one for one in operation.parameters if one.place == "called"]
        if len(instance.args) > len(given) or len(instance.inputs) > len(called):
            return None
        return {**values_of(operation, instance), OPERANDS: instance.operands}
    formals = _formals(operation)
    if instance.options or (instance.inputs and not formals):
        return None
    values: dict[str, Value] = {}
    for place, value in enumerate(instance.inputs):
        if value is not None:
            values[formals[place] if place < len(formals) else f"{formals[-1]} {place}"] = value
    return {**values, **instance.kwargs, OUTPUTS: instance.results, OPERANDS: instance.operands}


def _formals(operation: Operation) -> list[str]:
    return [one.name for one in operation.parameters if one.place == "called"]


def rebuilt(subject: Subject, base: Instance, values: NamedParameters) -> Instance:
    """Return `base` with other parameters; those with None are left out."""
    given = {name: value for name, value in values.items() if value is not None and name not in (OUTPUTS, OPERANDS)}
    policy = _policy(values.get(OPERANDS))
    if not subject.node:
        made = assembled(subject.operation, given)
        return replace(made, source=base.source, origin=base.origin, operands=policy)
    formals = _formals(subject.operation)
    inputs = [given.get(name) for name in formals]
    inputs += [given[name] for name in sorted((one for one in given if _variadic(one)), key=_place)]
    while inputs and inputs[-1] is None:
        inputs.pop()
    kwargs = {name: value for name, value in given.items() if name not in formals and not _variadic(name)}
    results = values.get(OUTPUTS)
    named = tuple(bool(one) for one in results) if isinstance(results, tuple) else ()
    return replace(base, kwargs=kwargs, inputs=tuple(inputs), results=named, operands=policy)


def parent_of(subject: Subject, base: Instance, values: NamedParameters) -> Parent:
    """Return the parent of the neighbours that are made of `base` with the parameters `values`."""
    parameters = subject.operation.parameters
    given = [one.name for one in parameters if one.place == "given" and one.required]
    called = [one.name for one in parameters if one.place == "called"]
    names = {str(place): name for place, name in enumerate(given)}
    names |= {f"input {place}": name for place, name in enumerate(called)}
    return Parent(rebuilt(subject, base, values), names)


def _place(name: str) -> int:
    return int(name.rpartition(" ")[2])


def _policy(value: Value) -> OperandPolicy:
    return next((policy for policy in OPERAND_POLICIES if policy == value), "")
