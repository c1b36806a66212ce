"""Programs of one operator: an instance of torch or Keras with slots where its inputs go, and the feed that fills them.

The bytes of such a program are the instance as JSON; its kind is the library's name. The library defines the results of
an operator with these parameters, and a compiler's front end defines how it is compiled.
"""

from collections.abc import Callable
from dataclasses import replace

from miscompile.base.errors import UsageError
from miscompile.core.case import Case, Port, Program
from miscompile.core.tensor import Tensor
from miscompile.instances.code import decoded, encoded
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Slot, Value, leaves, mapped, tensor_of


def to_case(instance: Instance, *, constants: bool = False) -> Case:
    """Return the single-operator program of a torch or Keras instance, with the tensors as its feed.

    The tensors that the operator is called with become inputs, in order; those that construct a module stay constant.
    With `constants`, or if the instance itself says so, only the first becomes an input, as in OPERA's templates, and
    the others are part of the program. The results are not known before a run, so the program has no outputs yet.
    Raises UsageError for ONNX, whose instances are models.
    """
    if instance.library == "onnx":
        raise UsageError("an instance of ONNX is made into a model, not into a program of its own kind")
    given: list[Tensor] = []
    constants = instance.operands == "first fed" or (constants and instance.operands != "fed")

    def slot(value: Value) -> Value:
        if not isinstance(value, Held | Drawn) or (constants and given):
            return value
        held = tensor_of(value)
        given.append(held)
        return Slot(len(given) - 1, held.dtype, held.shape)

    program = _with_calls(instance, slot)
    ports = tuple(Port(f"x{place}", value.dtype, value.shape) for place, value in enumerate(given))
    recipe = {"api": instance.api, "source": instance.source, "origin": instance.origin}
    payload = encoded(replace(program, source="", origin=""))
    return Case(Program(instance.library, payload, ports, ()), (tuple(given),), recipe)


def from_case(case: Case) -> Instance:
    """Return the instance that a torch or Keras case was made of; the tensors are those of its first feed."""
    feed = case.feeds[0]

    def fill(value: Value) -> Value:
        return Held(feed[value.index]) if isinstance(value, Slot) else value

    recipe = case.recipe
    found = _with_calls(decoded(case.program.payload), fill)
    return replace(found, source=str(recipe.get("source", "")), origin=str(recipe.get("origin", "")))


def slots(instance: Instance) -> list[Slot]:
    """Return the slots of a program's instance, by their number."""
    values = (*instance.args, *instance.kwargs.values(), *instance.inputs, *instance.options.values())
    return sorted((leaf for one in values for leaf in leaves(one) if isinstance(leaf, Slot)), key=lambda s: s.index)


def _with_calls(instance: Instance, change: Callable[[Value], Value]) -> Instance:
    """Return the instance with `change` applied to the leaves of the operator's call parameters."""
    inputs = tuple(mapped(value, change) for value in instance.inputs)
    options = {name: mapped(value, change) for name, value in instance.options.items()}
    if instance.form == "module":
        return replace(instance, inputs=inputs, options=options)
    args = tuple(mapped(value, change) for value in instance.args)
    kwargs = {name: mapped(value, change) for name, value in instance.kwargs.items()}
    return replace(instance, args=args, kwargs=kwargs, inputs=inputs, options=options)
