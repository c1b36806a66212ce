"""Construction of modules of one operator from instances, after the template of OPERA (paper, figure 4) with every
tensor an input.

Parameters are converted to objects of torch once, when the module is constructed. `forward` only inserts the inputs,
so that a tracer records a single call of the operator.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import torch

from miscompile.core.tensor import Tensor
from miscompile.instances.code import decoded
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Made, SliceValue, Slot, Value, leaves, tensor_of
from miscompile.targets.torch.values import found, from_torch, object_of, to_torch

Maker: TypeAlias = Callable[[Sequence[torch.Tensor]], Any]
"""Returns a parameter, given the tensors of a call."""


class OperatorModule(torch.nn.Module):  # type: ignore[misc]  # torch is not read by the type checker
    """One operator with its parameters; called with the tensors of its slots, in order of their numbers.

    Tensors of a call that are not inputs are buffers. A module is constructed with seed 0, so that its weights are
    the same in every process. Raises OutsideTorchError, NotImplementedError, and torch's exceptions.
    """

    def __init__(self, instance: Instance) -> None:
        super().__init__()
        self.inner = _constructed(instance) if instance.form == "module" else None
        called: Any = found(instance.api) if self.inner is None else self.inner
        args, kwargs = (instance.args, instance.kwargs) if self.inner is None else (instance.inputs, instance.options)
        places = _Places(self, sum(1 for value in (*args, *kwargs.values()) for leaf in leaves(value) if _slot(leaf)))
        given = [places.maker(value) for value in args]
        options = {name: places.maker(value) for name, value in kwargs.items()}
        self._buffers_used = tuple(places.names)
        self._called, self._given, self._options = [called], tuple(given), options

    def forward(self, *inputs: torch.Tensor) -> Any:  # noqa: ANN401 - whatever the operator returns
        """Call the operator with its inputs inserted into its parameters."""
        tensors = (*inputs, *[getattr(self, name) for name in self._buffers_used])
        args = [maker(tensors) for maker in self._given]
        kwargs = {name: maker(tensors) for name, maker in self._options.items()}
        return self._called[0](*args, **kwargs)


def _slot(value: Value) -> bool:
    return isinstance(value, Slot)


def _constructed(instance: Instance) -> torch.nn.Module:
    torch.manual_seed(0)
    made = object_of(Made(instance.api, instance.args, instance.kwargs))
    if not isinstance(made, torch.nn.Module):
        raise TypeError(f"{instance.api} makes no module")
    return made.eval()


class _Places:
    """Builds the functions that return an operator's parameters; tensors that are not inputs become buffers."""

    def __init__(self, owner: torch.nn.Module, inputs: int) -> None:
        self._owner, self._inputs = owner, inputs
        self.names: list[str] = []

    def maker(self, value: Value) -> Maker:
        """Return a function that returns `value`, with new containers in each call, because an operator may write to
        them."""
        match value:
            case Slot():
                return _picked(value.index)
            case Held() | Drawn():
                self.names.append(f"constant{len(self.names)}")
                self._owner.register_buffer(self.names[-1], to_torch(tensor_of(value)))
                return _picked(self._inputs + len(self.names) - 1)
            case tuple() | list():
                return _sequence(tuple if isinstance(value, tuple) else list, [self.maker(item) for item in value])
            case dict():
                return _mapping([(object_of(key), self.maker(item)) for key, item in value.items()])
            case SliceValue(start, stop, step):
                return _span(*(self.maker(part) for part in (start, stop, step)))
            case _:
                return _constant(object_of(value))


def _picked(place: int) -> Maker:
    return lambda tensors: tensors[place]


def _constant(thing: Any) -> Maker:  # noqa: ANN401 - anything of torch's
    return lambda tensors: thing


def _sequence(kind: type, makers: list[Maker]) -> Maker:
    return lambda tensors: kind([maker(tensors) for maker in makers])


def _mapping(makers: list[tuple[Any, Maker]]) -> Maker:
    return lambda tensors: {key: maker(tensors) for key, maker in makers}


def _span(start: Maker, stop: Maker, step: Maker) -> Maker:
    return lambda tensors: slice(start(tensors), stop(tensors), step(tensors))


def module_of(payload: bytes) -> OperatorModule:
    """Return the module of a program, in eval mode.

    Raises UsageError for invalid bytes, and as `OperatorModule`.
    """
    made = OperatorModule(decoded(payload))
    made.eval()
    return made


def flat(outputs: Any) -> Iterator[torch.Tensor]:  # noqa: ANN401 - whatever the operator returned
    """Yield the tensors in an operator's result, in order. Raises NotImplementedError for other objects in it."""
    match outputs:
        case torch.Tensor():
            yield outputs
        case tuple() | list():
            for item in outputs:
                yield from flat(item)
        case dict():
            for item in outputs.values():
                yield from flat(item)
        case _:
            raise NotImplementedError(f"a result of type {type(outputs).__name__} is no tensor")


def tensors_of(outputs: Any) -> tuple[Tensor, ...]:  # noqa: ANN401 - whatever the operator returned
    """Return copies of the tensors in an operator's result. Raises NotImplementedError as `flat`."""
    return tuple(from_torch(value.clone()) for value in flat(outputs))
