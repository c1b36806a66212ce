"""The toy's program: calls on named values, constants, and the known types of values.

Passes rewrite a `Code` in place. Every call defines its values once; graph outputs are names of values, so that even
an output can be bypassed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from miscompile.core.tensor import Array

Bugs = frozenset[str]
"""The names of the faults that are switched on; empty for a correct compiler."""

ToyShape = tuple[int, ...]

BRANCHES = ("then_branch", "else_branch")
"""The attributes of an If that hold its bodies, each a `Code`."""


class ToyError(Exception):
    """The toy cannot compile or run a program. Messages are matched by `known.toml`."""


class ToyUnsupported(ToyError):  # noqa: N818 - reads as what it is in an outcome
    """The toy lacks an operator, an element type or a form of an operator."""

    def __init__(self, what: str) -> None:
        super().__init__(f"toy has no kernel for {what}")


@dataclass(frozen=True, slots=True)
class Type:
    """Element type and shape of a value; a size is None when unknown, `shape` is None when the rank is unknown."""

    dtype: "np.dtype[Any]"
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class ToyCall:
    """One operator call. Calls are compared by identity. `""` is an omitted optional input."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def out(self) -> str:
        """Name of the first output."""
        return self.outputs[0]

    def input(self, index: int) -> str:
        """Name of input `index`, `""` when it is absent."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - an attribute has any type
        """Value of attribute `name`. A float by default is rounded to float32, as every written one is."""
        if name not in self.attributes and isinstance(default, float):
            return float(np.float32(default))
        return self.attributes.get(name, default)


@dataclass(slots=True)
class Code:
    """A whole program. `calls` are ordered such that every value is defined before its use."""

    inputs: tuple[str, ...]
    outputs: list[str]
    calls: list[ToyCall]
    constants: dict[str, Array]
    types: dict[str, Type]
    _serial: int = 0
    _producers: dict[str, ToyCall] | None = None
    _uses: dict[str, int] | None = None

    def copy(self) -> "Code":
        """Return a copy that passes can rewrite; calls and arrays, which nobody changes, are shared."""
        return Code(
            self.inputs, list(self.outputs), list(self.calls), dict(self.constants), dict(self.types), self._serial
        )

    def producer(self, name: str) -> ToyCall | None:
        """Return the call that defines `name`; None for inputs and constants."""
        if self._producers is None:
            self._producers = {output: call for call in self.calls for output in call.outputs if output}
        return self._producers.get(name)

    def made_by(self, name: str, *ops: str) -> ToyCall | None:
        """Return the call that defines `name` as its first output if its operator is one of `ops`."""
        call = self.producer(name)
        return call if call is not None and call.op in ops and call.out == name else None

    def uses(self, name: str) -> int:
        """Count the input slots and graph outputs that read `name`."""
        if self._uses is None:
            self._uses = {}
            for call in self.calls:
                for value in call.inputs:
                    self._uses[value] = self._uses.get(value, 0) + 1
            for value in self.outputs:
                self._uses[value] = self._uses.get(value, 0) + 1
        return self._uses.get(name, 0)

    def constant(self, name: str) -> Array | None:
        """Return the elements of `name` if it is a constant."""
        return self.constants.get(name)

    def dtype(self, name: str) -> "np.dtype[Any] | None":
        """Return the element type of `name` if it is known."""
        found = self.types.get(name)
        return None if found is None else found.dtype

    def shape(self, name: str) -> ToyShape | None:
        """Return the shape of `name` if every size is known."""
        found = self.types.get(name)
        if found is None or found.shape is None or any(size is None for size in found.shape):
            return None
        return tuple(size for size in found.shape if size is not None)

    def rank(self, name: str) -> int | None:
        """Return the rank of `name` if it is known."""
        found = self.types.get(name)
        return None if found is None or found.shape is None else len(found.shape)

    def add_constant(self, value: Array) -> str:
        """Add a constant and return its name."""
        name = self.fresh()
        self.constants[name] = value
        self.types[name] = Type(value.dtype, tuple(value.shape))
        return name

    def fresh(self, dtype: "np.dtype[Any] | None" = None, shape: ToyShape | None = None) -> str:
        """Return an unused value name; with `dtype` its type is recorded (`shape` None: unknown)."""
        self._serial += 1
        name = f"%{self._serial}"
        if dtype is not None:
            self.types[name] = Type(dtype, shape)
        return name

    def swap(self, old: ToyCall, *new: ToyCall) -> None:
        """Replace `old` by `new`. The new calls must define every value of `old` that is still used."""
        index = next(i for i, call in enumerate(self.calls) if call is old)
        self.calls[index : index + 1] = new
        self._forget()

    def bypass(self, call: ToyCall, value: str) -> None:
        """Remove `call` and replace all uses of its first output by `value`."""
        self.rename(call.out, value)
        self.swap_out(call)

    def swap_out(self, call: ToyCall) -> None:
        """Remove `call`, whose values have no uses."""
        self.calls = [other for other in self.calls if other is not call]
        self._forget()

    def rename(self, old: str, new: str) -> None:
        """Replace all uses of `old` by `new`."""
        self.calls = [
            replace(call, inputs=tuple(new if name == old else name for name in call.inputs))
            if old in call.inputs
            else call
            for call in self.calls
        ]
        self.outputs = [new if name == old else name for name in self.outputs]
        self._forget()

    def retain(self, calls: list[ToyCall]) -> None:
        """Keep exactly `calls`."""
        self.calls = calls
        self._forget()

    def _forget(self) -> None:
        self._producers = None
        self._uses = None
