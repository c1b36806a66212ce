"""Steps on presence: each optional operand left out or given, each optional result named or not."""

from collections.abc import Iterator
from itertools import islice

from miscompile.base.dtypes import DTYPES
from miscompile.harvest.constraints.generate import Constraint, tensor_drawn
from miscompile.harvest.neighbours.call import OUTPUTS, StepView, Variation, is_tensor
from miscompile.instances.conversion import converted
from miscompile.instances.values import Drawn, Held, Value, tensor_of
from miscompile.instances.wording import brief

_MOST = 6
"""Largest number of values that are tried for an operand that was left out."""


def presence(scene: StepView) -> Iterator[Variation]:
    """Yield the instance without each optional operand, and with each that it leaves out.

    The value is that of another instance which has the operand, or drawn in shapes that operands often have.
    """
    for name, one in scene.constraints.items():
        if one.required or not is_tensor(one):
            continue
        if scene.values.get(name) is not None:
            yield Variation({name: None}, f"{name} left out")
        else:
            for value, source in islice(_fillings(scene, one), _MOST):
                yield Variation({name: value}, f"{name} given ({source})")


def _fillings(scene: StepView, one: Constraint) -> Iterator[tuple[Value, str]]:
    dtype = _dtype(scene, one)
    for other in scene.siblings[:2]:
        value = other.get(one.name)
        if isinstance(value, Held | Drawn):
            found = tensor_of(value)
            kind = DTYPES[found.dtype].kind
            same = dtype is None or kind == "string" or DTYPES[dtype].kind != kind
            kept = found if same or dtype is None else converted(found, dtype)
            yield Held(kept), f"{brief(Held(kept))} of another test"
    shape = next((value.shape for value in scene.data().values()), ())
    shapes = dict.fromkeys([(), (1,), shape[1:2], shape[-1:], shape, (scene.rank(),)])
    for made in shapes:
        if not one.ranks or len(made) in one.ranks:
            drawn = tensor_drawn(dtype or (one.dtypes or ("float32",))[0], made, scene.draw.randrange(1000), one)
            if drawn.dtype != "string":
                yield drawn, f"{brief(drawn)} drawn"


def _dtype(scene: StepView, one: Constraint) -> str | None:
    """Return the type of a given tensor of the same group, else a usual one that is allowed."""
    for name, value in scene.tensors().items():
        other = scene.constraints.get(name)
        if other is not None and other.group == one.group and value.dtype in one.dtypes:
            return value.dtype
    usual = [name for name in ("float32", "int64", "bool") if name in one.dtypes]
    return usual[0] if usual else None


def outputs(scene: StepView) -> Iterator[Variation]:
    """Yield the instance with each optional result named that was not, and without each that was."""
    optional = scene.subject.outputs
    now = scene.values.get(OUTPUTS)
    given = [bool(one) for one in now] if isinstance(now, tuple) else []
    named = given or [not one for one in optional]
    named += [False] * (len(optional) - len(named))
    for place, free in enumerate(optional):
        if not free:
            continue
        other = [not one if number == place else one for number, one in enumerate(named)]
        while other and not other[-1]:
            other.pop()
        if other:
            said = "left out" if named[place] else "named"
            yield Variation({OUTPUTS: tuple(other)}, f"result {place} {said}")
