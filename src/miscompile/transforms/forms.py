"""Other forms of one call: with an operand fed, constant or left out, of another rank or size, without an attribute.

The results of another form are others. So this is no equivalent program, and no oracle compares its values: the oracle
of forms asks whether a compiler that refuses a call takes the same operator, with the same element types, in a form
beside it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from onnx import defs

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ModelError, RejectedDraft, SpecError
from miscompile.base.specs import Spec
from miscompile.core.case import Case, Feed
from miscompile.core.tensor import Tensor
from miscompile.graph.axes import behind_new_axis, with_window_axis, without_first_axis, without_window_axis
from miscompile.graph.infer import infer
from miscompile.graph.model import Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.graph.sizes import retargeted, stretched
from miscompile.ops.operand_roles import structural_operands
from miscompile.ops.registry import schema
from miscompile.transforms.catalogue import FORM

_GOALS = (1, 2, 3, 4, 8)
"""Sizes that are tried in place of each size."""

_MOST_SIZES = 4
"""Different sizes of a call that are changed at most."""

_MOST_BYTES = 1 << 20
"""Bytes of operands up to which sizes are changed."""

_ROLES = ("shape", "size", "control", "quantisation", "setting", "domain")


@dataclass(frozen=True, slots=True)
class CallForm:
    """The only call of a model with its operands.

    `values` has a tensor for each feed, by the name of the operand; `fed` names the operands that are inputs.
    """

    model: Model
    node: Node
    values: Mapping[str, tuple[Tensor, ...]]
    fed: frozenset[str]

    @property
    def structural(self) -> frozenset[str]:
        """The operands that determine shapes or settings instead of being data."""
        places = structural_operands(*_ROLES).get(self.node.op, frozenset())
        return frozenset(name for place, name in enumerate(self.node.inputs) if place in places)

    @property
    def data(self) -> tuple[str, ...]:
        """The other operands, which have ranks and sizes of their own."""
        return tuple(name for name in self.values if name not in self.structural)

    def parameter(self, place: int) -> str:
        """Return the name of an operand on the operator's page."""
        form = schema(self.node.op, self.model.opset)
        formal = form.inputs[min(place, len(form.inputs) - 1)] if form is not None and form.inputs else None
        return formal.name if formal is not None else str(place)

    def with_values(self, change: Callable[[str, Tensor], Tensor]) -> "CallForm":
        """Return the call with other operands."""
        return replace(
            self, values={name: tuple([change(name, one) for one in held]) for name, held in self.values.items()}
        )


def call_form(model: Model, feeds: Sequence[Feed]) -> CallForm:
    """Return the call of a model. Raises RejectedDraft unless it has a single one, of plain tensors."""
    graph = model.graph
    if len(graph.nodes) != 1 or graph.nodes[0].domain or any(True for _ in graph.nodes[0].subgraphs()) or not feeds:
        raise RejectedDraft("only a program of one operator has other forms")
    names = [info.name for info in graph.inputs if info.name not in graph.initializers]
    columns = dict(zip(names, zip(*feeds, strict=True), strict=True))
    constants = {name: (value,) * len(feeds) for name, value in graph.initializers.items()}
    node, known = graph.nodes[0], {**constants, **columns}
    if not known.keys() >= set(filter(None, node.inputs)):
        raise RejectedDraft("an operand is no plain tensor")
    values = {name: known[name] for name in dict.fromkeys(node.inputs) if name}
    return CallForm(model, node, values, frozenset(values) & frozenset(names))


def program_of(call: CallForm) -> tuple[Model, tuple[Feed, ...]]:
    """Return the model of a call, and its feeds.

    Raises RejectedDraft or ModelError for a call whose results have no inferred types.
    """
    types = {name: TensorType(held[0].dtype, held[0].shape) for name, held in call.values.items()}
    if any(one.shape != held[0].shape for held in call.values.values() for one in held):
        raise RejectedDraft("feeds of different shapes")
    fed = [name for name in call.values if name in call.fed]
    constants = {name: held[0] for name, held in call.values.items() if name not in call.fed}
    found = infer(call.node, types, call.model.opset, constants)
    results = [(name, kind) for name, kind in zip(call.node.outputs, found, strict=True) if name]
    if not all(isinstance(kind, TensorType) for _, kind in results):
        raise RejectedDraft("a result without an inferred type")
    graph = replace(
        call.model.graph,
        inputs=tuple(ValueInfo(name, types[name]) for name in fed),
        outputs=tuple(ValueInfo(name, kind) for name, kind in results),
        nodes=(call.node,),
        initializers=constants,
        types={},
    )
    count = max(map(len, call.values.values()), default=1)
    feeds = tuple(tuple(call.values[name][turn] for name in fed) for turn in range(count))
    return replace(call.model, graph=graph), feeds


@dataclass(frozen=True, slots=True)
class OtherForm:
    """The transform `form{change=CHANGE, of=WHAT}`: changes the call in one respect.

    | change | of | the call gets |
    |---|---|---|
    | `constant`, `fed` | number of an operand | the operand as a constant, or as an input |
    | `ones` | number of an operand | ones in an operand that holds sizes or settings |
    | `omitted` | number of an operand | no such operand, which is optional |
    | `default` | attribute | no such attribute |
    | `more`, `less` | attribute | an integer that is one more, or one less |
    | `deeper`, `flatter` | | operands of one axis more, or one axis less |
    | `wider`, `narrower` | | a window of one axis more, or one axis less |
    | `resized` | `3to4` | 4 in place of the size 3, wherever it occurs |
    """

    may_be_refused: ClassVar[bool] = True

    change: str = "deeper"
    of: str = ""

    def __post_init__(self) -> None:
        """Raise SpecError for an unknown change."""
        if self.change not in _CHANGES:
            raise SpecError(f"there is no change '{self.change}' of a call; there are: {', '.join(_CHANGES)}")

    def apply_to_case(self, model: Model, feeds: Sequence[Feed]) -> tuple[Model, tuple[Feed, ...]]:
        """Return the model and the feeds of the other form.

        Raises RejectedDraft when the change does not apply, or changes an element type; ModelError when the result
        breaks the operator's rules.
        """
        before = call_form(model, feeds)
        changed, other = program_of(_CHANGES[self.change](before, self.of))
        if _dtypes(changed) != _dtypes(program_of(before)[0]):
            raise RejectedDraft("another element type")
        return changed, other


def forms_of(case: Case) -> tuple[tuple[Spec, ...], ...]:
    """Return the other forms of the call in `case`, in steps: operands and attributes, then ranks, then sizes.

    Each is the spec of a transform that applies to `case`. There are none for a program of several operators.
    """
    try:
        model = read(case.program.payload) if case.program.kind == "onnx" else None
        call = None if model is None else call_form(model, case.feeds)
    except (RejectedDraft, ModelError):
        return ()
    if model is None or call is None:
        return ()
    ranks = tuple((change, "") for change in ("deeper", "flatter", "wider", "narrower"))
    steps = (tuple(_of_parts(call)), ranks, tuple(_of_sizes(call)))
    return tuple(
        tuple(
            Spec(FORM).with_options(change=change, **({"of": of} if of else {}))
            for change, of in step
            if _applies(OtherForm(change, of), model, case)
        )
        for step in steps
    )


def described(form: Spec, case: Case) -> str:
    """Return what another form of the call in `case` has, in words: `axes as a constant`."""
    options = dict(form.options)
    change, of = options["change"], options.get("of", "")
    call = call_form(read(case.program.payload), case.feeds)
    part = f"`{call.parameter(int(of))}`" if of.isdigit() else f"`{of}`"
    old, _, new = of.partition("to")
    return {
        "constant": f"{part} as a constant",
        "fed": f"{part} as an input",
        "ones": f"ones in {part}",
        "omitted": f"{part} left out",
        "default": f"{part} left out",
        "more": f"{part} one more",
        "less": f"{part} one less",
        "deeper": "one axis more",
        "flatter": "one axis less",
        "wider": "one axis more in its window",
        "narrower": "one axis less in its window",
        "resized": f"size {new} in place of {old}",
    }[change]


def _applies(form: OtherForm, model: Model, case: Case) -> bool:
    try:
        form.apply_to_case(model, case.feeds)
    except (RejectedDraft, ModelError):
        return False
    return True


def _of_parts(call: CallForm) -> Iterator[tuple[str, str]]:
    seen = set[str]()
    for place, name in enumerate(call.node.inputs):
        if not name or name in seen:
            continue
        seen.add(name)
        yield ("constant" if name in call.fed else "fed"), str(place)
        yield "omitted", str(place)
        if name in call.structural:
            yield "ones", str(place)
    for name, attribute in call.node.attributes.items():
        yield "default", name
        if attribute.kind == "int":
            yield from (("more", name), ("less", name))


def _of_sizes(call: CallForm) -> Iterator[tuple[str, str]]:
    sizes = sorted({size for name in call.data for size in call.values[name][0].shape})
    for size in sizes[:_MOST_SIZES]:
        yield from (("resized", f"{size}to{goal}") for goal in _GOALS if goal != size)


def _dtypes(model: Model) -> list[str]:
    """Return the element types of the operands and results of the only call, by its places."""
    graph = model.graph
    types = {info.name: info.type for info in (*graph.inputs, *graph.outputs)}
    known = {name: kind.dtype for name, kind in types.items() if isinstance(kind, TensorType)}
    known |= {name: value.dtype for name, value in graph.initializers.items()}
    node = graph.nodes[0]
    return [known[name] for name in (*sorted(set(filter(None, node.inputs)) & _kept(model)), *node.outputs) if name]


def _kept(model: Model) -> set[str]:
    """Return the operands whose element types decide which kernel runs: those that are not optional."""
    node = model.graph.nodes[0]
    form = schema(node.op, model.opset)
    optional = defs.OpSchema.FormalParameterOption.Optional
    formals = form.inputs if form is not None else ()
    return {
        name
        for place, name in enumerate(node.inputs)
        if not formals or formals[min(place, len(formals) - 1)].option != optional
    }


def _operand(call: CallForm, of: str) -> str:
    place = int(of) if of.isdigit() else -1
    if not 0 <= place < len(call.node.inputs) or not call.node.inputs[place]:
        raise RejectedDraft(f"the call has no operand {of}")
    return call.node.inputs[place]


def _constant(call: CallForm, of: str) -> CallForm:
    name = _operand(call, of)
    if name not in call.fed:
        raise RejectedDraft("a constant already")
    if call.fed == {name}:
        raise RejectedDraft("a call of constants is folded, which says nothing about its kernel")
    return replace(call, fed=call.fed - {name})


def _fed(call: CallForm, of: str) -> CallForm:
    name = _operand(call, of)
    if name in call.fed:
        raise RejectedDraft("an input already")
    return replace(call, fed=call.fed | {name})


def _ones(call: CallForm, of: str) -> CallForm:
    name = _operand(call, of)

    def change(other: str, value: Tensor) -> Tensor:
        if other != name or DTYPES[value.dtype].kind not in ("float", "int", "uint") or value.dtype == "bfloat16":
            return value
        return Tensor(value.dtype, np.ones_like(value.array))

    changed = call.with_values(change)
    if all((one.array == 1).all() for one in call.values[name]):
        raise RejectedDraft("ones already")
    return changed


def _omitted(call: CallForm, of: str) -> CallForm:
    name, place = _operand(call, of), int(of)
    form = schema(call.node.op, call.model.opset)
    formals = form.inputs if form is not None else ()
    if place >= len(formals) or formals[place].option != defs.OpSchema.FormalParameterOption.Optional:
        raise RejectedDraft("the operand is not optional")
    inputs = tuple("" if number == place else one for number, one in enumerate(call.node.inputs))
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    values = {key: held for key, held in call.values.items() if key != name or name in inputs}
    return replace(call, node=replace(call.node, inputs=inputs), values=values, fed=call.fed & frozenset(values))


def _default(call: CallForm, of: str) -> CallForm:
    if of not in call.node.attributes:
        raise RejectedDraft(f"the call has no attribute {of}")
    rest = {name: attribute for name, attribute in call.node.attributes.items() if name != of}
    return replace(call, node=replace(call.node, attributes=rest))


def _moved(step: int) -> Callable[[CallForm, str], CallForm]:
    def change(call: CallForm, of: str) -> CallForm:
        attribute = call.node.attributes.get(of)
        if attribute is None or attribute.kind != "int":
            raise RejectedDraft(f"the call has no integer {of}")
        moved = {**call.node.attributes, of: replace(attribute, value=attribute.value + step)}
        return replace(call, node=replace(call.node, attributes=moved))

    return change


def _deeper(call: CallForm, of: str) -> CallForm:
    del of
    names = _deepest(call)
    stacked = call.with_values(
        lambda name, value: Tensor(value.dtype, np.stack([value.array] * 2)) if name in names else value
    )
    return replace(stacked, node=behind_new_axis(call.node))


def _flatter(call: CallForm, of: str) -> CallForm:
    del of
    names = _deepest(call)
    if any(not held[0].shape or not held[0].shape[0] for name, held in call.values.items() if name in names):
        raise RejectedDraft("no first axis")
    flat = call.with_values(
        lambda name, value: Tensor(value.dtype, np.array(value.array[0])) if name in names else value
    )
    return replace(flat, node=without_first_axis(call.node))


def _wider(call: CallForm, of: str) -> CallForm:
    del of
    names = _windowed(call, 3)
    more = call.with_values(
        lambda name, value: Tensor(value.dtype, value.array[..., np.newaxis]) if name in names else value
    )
    return replace(more, node=with_window_axis(call.node))


def _narrower(call: CallForm, of: str) -> CallForm:
    del of
    names = _windowed(call, 4)
    if any(not held[0].shape[-1] for name, held in call.values.items() if name in names):
        raise RejectedDraft("an empty last axis")
    less = call.with_values(
        lambda name, value: Tensor(value.dtype, np.ascontiguousarray(value.array[..., 0])) if name in names else value
    )
    return replace(less, node=without_window_axis(call.node, last=True))


def _windowed(call: CallForm, least: int) -> frozenset[str]:
    """Return the operands with the axes of a window: those of the highest rank, which is at least `least`."""
    names = _deepest(call)
    if any(len(call.values[name][0].shape) < least for name in names):
        raise RejectedDraft("no window, or none of so many axes")
    return names


def _deepest(call: CallForm) -> frozenset[str]:
    """Return the operands of the highest rank."""
    ranks = {name: len(call.values[name][0].shape) for name in call.data}
    if not ranks:
        raise RejectedDraft("no operand with axes")
    return frozenset(name for name, rank in ranks.items() if rank == max(ranks.values()))


def _resized(call: CallForm, of: str) -> CallForm:
    old, _, new = of.partition("to")
    if not (old.isdigit() and new.isdigit()):
        raise RejectedDraft(f"no sizes: {of}")
    size, goal, structural = int(old), int(new), call.structural
    if not any(size in call.values[name][0].shape for name in call.data):
        raise RejectedDraft(f"no operand has the size {size}")
    if sum(one.array.nbytes for held in call.values.values() for one in held) > _MOST_BYTES:
        raise RejectedDraft("large operands")
    return call.with_values(
        lambda name, value: (
            retargeted(value, size, goal, scale=False)
            if name in structural
            else stretched(value, size, goal)
            if size in value.shape
            else value
        )
    )


_CHANGES: Mapping[str, Callable[[CallForm, str], CallForm]] = {
    "constant": _constant, "fed": _fed, "ones": _ones, "omitted": _omitted, "default": _default, "more": _moved(1),
    "less": _moved(-1), "deeper": _deeper, "flatter": _flatter, "wider": _wider, "narrower": _narrower,
    "resized": _resized,
}  # fmt: skip
