"""The boundary of a bug of a front end: which types, ranks, sizes, parameters and fed operands show it.

Each answer is an instance that was run: the reduced one with one thing changed. The library decides which variants are
valid; one that it refuses, or whose result cannot be compared, says nothing.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.graph.sizes import stretched
from miscompile.instances.conversion import converted
from miscompile.instances.differences import named
from miscompile.instances.instance import Instance, OperandPolicy, Parent
from miscompile.instances.values import Drawn, Held, Name, Value, leaves, mapped, tensor_of
from miscompile.instances.wording import brief
from miscompile.ops.operand_roles import structural_operands
from miscompile.producers.instances.onnx_model import split_api
from miscompile.producers.instances.onnx_values import schema_of
from miscompile.triage.boundary import FIRST_OPSET, MOST_AXES, SIZES, TYPES, Probe
from miscompile.triage.reduce.instances import InstanceDrafts

_AXES = frozenset({"axis", "axes", "dim", "dims", "perm", "batch_axis", "start_dim", "end_dim", "dim0", "dim1"})
"""Names of parameters that count dimensions."""

_PERMUTATIONS = frozenset({"perm"})

_NAMED_TYPES = ("float32", "float16", "float64", "int32", "int64", "bool")

_POLICIES: Mapping[OperandPolicy, str] = {
    "fed": "all are inputs",
    "first fed": "all but the first are constants",
    "first constant": "only the first is a constant",
    "constant": "all are constants",
    "": "constants where the shapes depend on them",
    "shared": "equal ones are the same value",
}

_MOST_ELEMENTS = 1 << 16
"""Greatest number of elements of a variant with other sizes; a larger one takes long to judge."""

InstanceProbe = Probe[Instance]


@dataclass(frozen=True, slots=True)
class ProbedInstance:
    """An instance with names for its parameters, and what its tensors mean."""

    instance: Instance
    parent: Parent | None = None

    def title(self, key: str) -> str:
        """Return the name of the parameter `key`: the library's own, if it is known."""
        if key in _inputs(self.instance):
            return _inputs(self.instance)[key]
        return (self.parent.names.get(key) if self.parent else None) or named(key)

    def tensors(self) -> dict[str, list[Tensor]]:
        """Return the tensors by key, without operands whose elements determine shapes."""
        fixed = self.fixed()
        found = {key: _tensors(value) for key, value in self.instance.parameters().items() if key not in fixed}
        return {key: values for key, values in found.items() if values}

    def fixed(self) -> set[str]:
        """Return the keys of operands whose elements determine shapes."""
        domain, op = split_api(self.instance.api)
        places = structural_operands("shape").get(op, ()) if self.instance.form == "node" and not domain else ()
        return {f"input {place}" for place in places}

    def titles(self, keys: Collection[str]) -> str:
        """Return the names of several parameters as a text."""
        return ", ".join(f"`{self.title(key)}`" for key in keys)


def instance_probes(probed: ProbedInstance, kind: InstanceDrafts) -> Iterator[InstanceProbe]:
    """Yield the instances to try; each aspect begins with the value that the reduced instance has."""
    yield from _types(probed)
    yield from _ranks(probed)
    yield from _parameters(probed)
    yield from _operands(probed, kind)
    yield from _sizes(probed)
    yield from _opsets(probed.instance)


def _types(probed: ProbedInstance) -> Iterator[InstanceProbe]:
    """Change each element type in all tensors that share it, and in parameters that name it."""
    groups: dict[tuple[str, str], list[str]] = {}
    for key, values in probed.tensors().items():
        for dtype in dict.fromkeys(value.dtype for value in values):
            groups.setdefault((_type_group(probed.instance, key), dtype), []).append(key)
    for (_, dtype), keys in groups.items():
        goals = next((types for types in TYPES.values() if dtype in types), ())
        for goal in dict.fromkeys((dtype, *goals)):
            change = partial(_retyped, keys=frozenset(keys), dtype=dtype, goal=goal)
            yield Probe(f"element type of {probed.titles(keys)}", goal, _altered(probed.instance, change))


def _retyped(key: str, value: Value, keys: Collection[str], dtype: str, goal: str) -> Value:
    if isinstance(value, Name) and value.kind == "dtype" and value.name == dtype:
        return replace(value, name=goal)
    if key in keys and isinstance(value, Held | Drawn) and tensor_of(value).dtype == dtype != goal:
        return Held(converted(tensor_of(value), goal))
    return value


def _ranks(probed: ProbedInstance) -> Iterator[InstanceProbe]:
    """Add and remove leading dimensions, in all tensors of the highest rank and in the first of them alone.

    The axes among the parameters move with the dimensions, and if that is not valid they stay.
    """
    found = {key: max(len(one.shape) for one in values) for key, values in probed.tensors().items()}
    highest = max(found.values(), default=0)
    keys = [key for key, rank in found.items() if rank == highest]
    for group in dict.fromkeys((tuple(keys), tuple(keys[:1]))):
        if not group:
            continue
        aspect = f"rank of {probed.titles(group)}"
        yield Probe(aspect, str(highest), probed.instance)
        for more in (*((-1,) if highest else ()), *range(1, MOST_AXES + 1)):
            deeper = _altered(probed.instance, partial(_deepened, keys=group, rank=highest, more=more))
            yield Probe(aspect, str(highest + more), _moved(probed, deeper, more))
            yield Probe(aspect, str(highest + more), deeper)


def _deepened(key: str, value: Value, keys: Collection[str], rank: int, more: int) -> Value:
    if key not in keys or not isinstance(value, Held | Drawn) or len(tensor_of(value).shape) != rank:
        return value
    found = tensor_of(value)
    array: Array = found.array
    for _ in range(more):
        array = np.stack([array] * 2)
    if more < 0 and len(array):
        array = np.asarray(array[0])
    return Held(Tensor(found.dtype, array))


def _moved(probed: ProbedInstance, instance: Instance, more: int) -> Instance:
    """Return an instance whose parameters count axes from the front behind `more` further dimensions."""

    def change(key: str, value: Value) -> Value:
        if not isinstance(value, int) or isinstance(value, bool) or probed.title(key) not in _AXES:
            return value
        return value + more if value >= max(0, -more) else value

    moved = _altered(instance, change)
    found = {name: moved.kwargs[name] for name in _PERMUTATIONS & set(moved.kwargs)}
    longer = {name: (*range(more), *value) for name, value in found.items() if isinstance(value, tuple) and more > 0}
    return replace(moved, kwargs={**moved.kwargs, **longer})


def _parameters(probed: ProbedInstance) -> Iterator[InstanceProbe]:
    """Change each parameter that is no tensor to other values of its kind, and leave out each optional one."""
    for key, value in probed.instance.parameters().items():
        if value is None:
            continue
        aspect, data = f"`{probed.title(key)}`", bool(_tensors(value))
        others = [] if data else _others(value)
        if not data and probed.parent is not None:
            others.insert(0, probed.parent.instance.parameters().get(key))
        probes = [Probe(aspect, brief(one), _with(probed.instance, key, one)) for one in others if one is not None]
        without = _without(probed.instance, key)
        if without is not None:
            probes.insert(0, Probe(aspect, "left out", without))
        if probes:
            yield Probe(aspect, "given" if data else brief(value), probed.instance)
            yield from probes


def _others(value: Value) -> list[Value]:
    """Return other values of the same kind."""
    match value:
        case bool():
            return [not value]
        case int():
            return [0, 1, -1, 2, value + 1, value - 1]
        case float():
            return [0.0, 1.0, -1.0, 0.5, value * 2]
        case Name("dtype", _):
            return [Name("dtype", name) for name in _NAMED_TYPES]
        case tuple() | list() if value and all(isinstance(item, int) and not isinstance(item, bool) for item in value):
            lists = [tuple([number] * len(value)) for number in (0, 1, 2)]
            moved = [item + 1 for item in value if isinstance(item, int)]
            return [list(one) if isinstance(value, list) else one for one in (*lists, tuple(moved), value[::-1])]
    return []


def _operands(probed: ProbedInstance, kind: InstanceDrafts) -> Iterator[InstanceProbe]:
    """Feed other operands, where the program is another one then."""
    instance = probed.instance
    if sum(map(len, probed.tensors().values())) + len(probed.fixed()) < 2:
        return
    programs: dict[str, str] = {}
    for policy in (
        "fed",
        "first fed",
        *(("first constant", "constant", "", "shared") if instance.form == "node" else ()),
    ):
        draft = replace(instance, operands=policy)
        program = _program(draft, kind)
        if program is not None:
            programs.setdefault(program, _POLICIES[policy])
            if programs[program] == _POLICIES[policy]:
                yield Probe("operands", _POLICIES[policy], draft)
    own = _program(instance, kind)
    if programs and own is not None and own not in programs:
        yield Probe("operands", "as in the script", instance)


def _program(draft: Instance, kind: InstanceDrafts) -> str | None:
    """Return what tells apart the programs of an instance with different operands fed; None if there is none."""
    if draft.form != "node":
        return draft.operands or ("first fed" if kind.constants else "fed")
    try:
        case: Case = kind.put_together(draft, {})
    except ModelError:
        return None
    return case.program.digest


def _sizes(probed: ProbedInstance) -> Iterator[InstanceProbe]:
    """Change each size in all tensors that have it, and if that is invalid, in the numbers that equal it as well."""
    found = probed.tensors()
    for size in sorted({size for values in found.values() for one in values for size in one.shape}):
        keys = [key for key, values in found.items() if any(size in one.shape for one in values)]
        aspect = f"size {size} of {probed.titles(keys)}"
        yield Probe(aspect, str(size), probed.instance)
        for goal in SIZES:
            if goal == size or _elements(found, size, goal) > _MOST_ELEMENTS:
                continue
            alone = _altered(probed.instance, partial(_resized, keys=frozenset(keys), size=size, goal=goal))
            yield Probe(aspect, str(goal), alone)
            both = _altered(alone, partial(_renumbered, probed=probed, size=size, goal=goal))
            if size > 1 and _digest(both) != _digest(alone):  # a number that is 1 is rarely a size
                yield Probe(aspect, str(goal), both)


def _elements(found: Mapping[str, Collection[Tensor]], size: int, goal: int) -> int:
    """Return how many elements there are with `goal` in place of `size`."""
    shapes = [one.shape for values in found.values() for one in values]
    return sum(math.prod(goal if held == size else held for held in shape) for shape in shapes)


def _digest(instance: Instance) -> str:
    """Return the digest that tells instances apart."""
    return InstanceDrafts().digest(instance)


def _resized(key: str, value: Value, keys: Collection[str], size: int, goal: int) -> Value:
    if key not in keys or not isinstance(value, Held | Drawn):
        return value
    return Held(stretched(tensor_of(value), size, goal))


def _renumbered(key: str, value: Value, probed: ProbedInstance, size: int, goal: int) -> Value:
    """Return a number that equals a size with the size, and the same in the elements of an operand of sizes."""
    if isinstance(value, int) and not isinstance(value, bool) and value == size and probed.title(key) not in _AXES:
        return goal
    if key in probed.fixed() and isinstance(value, Held | Drawn) and tensor_of(value).dtype in ("int64", "int32"):
        found = tensor_of(value)
        return Held(tensor(np.where(found.array == size, goal, found.array), found.dtype))
    return value


def _opsets(instance: Instance) -> Iterator[InstanceProbe]:
    """Import other versions of ONNX's operators, down to 13; what does not exist there is invalid."""
    if instance.form != "node" or split_api(instance.api)[0] not in ("", "ai.onnx"):
        return
    for version in range(instance.version, FIRST_OPSET - 1, -1):
        yield Probe("opset", str(version), replace(instance, version=version))


def _altered(instance: Instance, change: Callable[[str, Value], Value]) -> Instance:
    """Return an instance with `change` applied to every leaf and the key of its parameter."""
    return _from_keys(instance, lambda key, value: mapped(value, partial(change, key)))


def _with(instance: Instance, key: str, new: Value) -> Instance:
    return _from_keys(instance, lambda own, value: new if own == key else value)


def _from_keys(instance: Instance, change: Callable[[str, Value], Value]) -> Instance:
    return replace(
        instance,
        args=tuple(change(str(place), value) for place, value in enumerate(instance.args)),
        kwargs={name: change(name, value) for name, value in instance.kwargs.items()},
        inputs=tuple(change(f"input {place}", value) for place, value in enumerate(instance.inputs)),
        options={name: change(f"input {name}", value) for name, value in instance.options.items()},
    )


def _without(instance: Instance, key: str) -> Instance | None:
    """Return an instance without a parameter; None for one that has a position and cannot be left out."""
    if key in instance.kwargs:
        return replace(instance, kwargs={name: one for name, one in instance.kwargs.items() if name != key})
    name = key.removeprefix("input ")
    if name in instance.options and instance.form != "node":  # a node's options are what its bodies capture
        return replace(instance, options={own: one for own, one in instance.options.items() if own != name})
    if instance.form == "node" and name.isdigit() and int(name) > 0:
        return _with(instance, key, None)
    return None


def _tensors(value: Value) -> list[Tensor]:
    return [tensor_of(leaf) for leaf in leaves(value) if isinstance(leaf, Held | Drawn)]


def _inputs(instance: Instance) -> dict[str, str]:
    """Return the names that the schema gives to the operands of a node, by key."""
    return {key: str(one.name) for key, one in _formals(instance).items()}


def _type_group(instance: Instance, key: str) -> str:
    """Return the name of the type that operands of a node share; empty for other libraries, where all share one."""
    found = _formals(instance).get(key)
    return "" if found is None else str(found.type_str)


def _formals(instance: Instance) -> dict[str, Any]:
    if instance.form != "node":
        return {}
    domain, op = split_api(instance.api)
    schema = schema_of(op, instance.version, domain)
    return {f"input {place}": one for place, one in enumerate(schema.inputs)} if schema is not None else {}
