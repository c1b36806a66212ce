"""The instance: one use of an operator, the unit that OPERA migrates from library tests (paper, section III-A2).

One schema for all libraries. The parameters of an operator are in two fields, because modules and layers have two sets
of them:

    form        args, kwargs                      inputs, options
    function    everything                        nothing
    method      everything, self first            nothing
    module      what constructs it                what it is called with
    node        kwargs: the node's attributes     inputs: tensors, None for an optional one that is left out

`module` is a torch module or a Keras layer, `node` a node of ONNX.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from miscompile.instances.values import Drawn, Held, Value, leaves

Library = Literal["onnx", "torch", "keras"]
LIBRARIES: tuple[Library, ...] = get_args(Library)

CallStyle = Literal["function", "method", "module", "node"]
CALL_STYLES: tuple[CallStyle, ...] = get_args(CallStyle)

OperandPolicy = Literal["", "fed", "first fed", "first constant", "constant", "shared"]
"""Which operands are inputs of the program: as the migration decides; all; the first only, the others are constants;
all but the first, which is a constant; none; or as the migration decides, and equal operands of a node are one
value."""
OPERAND_POLICIES: tuple[OperandPolicy, ...] = get_args(OperandPolicy)


@dataclass(frozen=True, slots=True)
class Parent:
    """The instance of a library's test from which a neighbour was made, with its parameters in the neighbour's places.

    `names` are the library's names of the parameters that have a position, by their key in `Instance.parameters`.
    """

    instance: "Instance"
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Instance:
    """One use of an operator.

    `api` is the import path of the operator (`torch.nn.Conv2d`, `keras.ops.add`), for ONNX its name, with its domain in
    front where that is not the default (`ai.onnx.ml.Scaler`). `version` is the operator set of a node, `results` marks
    the named outputs of a node. `source` names the kind of source (`tests`, `database`, `constraints`, `relations`,
    ...), `origin` the very test, and `parent` is what a neighbour was made from. None of these is part of the content
    that identifies an instance. `operands` says which tensors a program of the instance is fed with; torch and Keras
    instances know `fed` and `first fed` only.
    """

    library: Library
    api: str
    form: CallStyle
    args: tuple[Value, ...] = ()
    kwargs: Mapping[str, Value] = field(default_factory=dict)
    inputs: tuple[Value, ...] = ()
    options: Mapping[str, Value] = field(default_factory=dict)
    version: int = 0
    results: tuple[bool, ...] = ()
    source: str = ""
    origin: str = ""
    operands: OperandPolicy = ""
    parent: Parent | None = None

    @property
    def operator(self) -> str:
        """The last part of the path, for tables."""
        return self.api.rpartition(".")[2]

    def parameters(self) -> dict[str, Value]:
        """Return every parameter by name: positional ones by position, those of a module's call marked."""
        return {
            **{str(place): value for place, value in enumerate(self.args)},
            **self.kwargs,
            **{f"input {place}": value for place, value in enumerate(self.inputs)},
            **{f"input {name}": value for name, value in self.options.items()},
        }

    def elements(self) -> int:
        """Return how many elements its tensors have together."""
        values = [leaf for one in self.parameters().values() for leaf in leaves(one)]
        held = sum(value.tensor.array.size for value in values if isinstance(value, Held))
        return held + sum(math.prod(value.shape) for value in values if isinstance(value, Drawn))
