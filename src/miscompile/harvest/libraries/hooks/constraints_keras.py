"""Constraints of Keras' layers and operations, from signatures, defaults and docstrings.

Run as `python -m miscompile.harvest.libraries.hooks.constraints_keras OUT SEED COUNT FIRST [BASES]`; see
`miscompile.harvest.constraints.run`.
"""

import inspect
import os
import sys
from collections.abc import Iterator
from typing import Any

from miscompile.core.tensor import Tensor
from miscompile.harvest.constraints.documents import (
    IGNORED,
    DocumentedParameter,
    constraint,
    documented_parameters,
    ranks_in,
)
from miscompile.harvest.constraints.generate import Constraint, Operation, ParameterKind
from miscompile.harvest.constraints.run import write
from miscompile.instances.instance import Instance
from miscompile.instances.program import to_case
from miscompile.targets.keras.adapter import EagerKeras, Keras
from miscompile.targets.keras.environment import prepare

_NO_OPERATORS = frozenset(
    {"Input", "InputLayer", "InputSpec", "Layer", "Wrapper", "RNN", "Lambda", "TFSMLayer", "JaxLayer", "FlaxLayer"}
)
"""Layers that compute nothing themselves, or whose parameters are code."""

_LISTS = frozenset(
    {
        "Add",
        "AdditiveAttention",
        "Attention",
        "Average",
        "Concatenate",
        "Dot",
        "Maximum",
        "Minimum",
        "Multiply",
        "Subtract",
    }
)
"""Layers that are called with a list of tensors."""

_NO_OPERATIONS = frozenset(
    {
        *("convert_to_numpy", "convert_to_tensor", "cond", "custom_gradient", "device_scope", "fori_loop", "is_tensor"),
        *("map", "scan", "shape", "stop_gradient", "switch", "unstack", "vectorized_map", "while_loop"),
        *("associative_scan", "rearrange"),
    }
)
"""Operations with functions as parameters, or without tensors as results."""


def operations() -> list[Operation]:
    """Return the layers and operations whose required parameters are known. Keras is imported when this is called."""
    found = [_function(name, one) for name, one in _public("ops") if name not in _NO_OPERATIONS]
    found += [_layer(name, one) for name, one in _public("layers") if name not in _NO_OPERATORS]
    return sorted((one for one in found if one is not None), key=lambda one: one.api)


def _public(space: str) -> Iterator[tuple[str, Any]]:
    import keras

    wanted = inspect.isclass if space == "layers" else inspect.isfunction
    for name, one in sorted(vars(getattr(keras, space)).items()):
        if not name.startswith("_") and wanted(one):
            yield name, one


def _function(name: str, one: Any) -> Operation | None:  # noqa: ANN401 - a function
    parameters = parameters_of(one, documented_parameters(inspect.getdoc(one) or ""))
    return Operation("keras", f"keras.ops.{name}", "function", parameters) if parameters else None


def _layer(name: str, one: Any) -> Operation | None:  # noqa: ANN401 - a class
    doc = inspect.getdoc(one) or ""
    parameters = parameters_of(one, documented_parameters(doc))
    if parameters is None:
        return None
    ranks = ranks_in(doc.partition("Input shape:")[2].partition("Output shape:")[0])
    floats = ("float32", "float16", "bfloat16", "float64", "int32", "bool")
    kind: ParameterKind = "tensors" if name in _LISTS else "tensor"
    called = Constraint("inputs", (kind,), dtypes=floats, ranks=ranks or (2, 3, 4), place="called")
    return Operation("keras", f"keras.layers.{name}", "module", (*parameters, called))


def parameters_of(one: Any, documented: dict[str, DocumentedParameter]) -> tuple[Constraint, ...] | None:  # noqa: ANN401 - anything called
    """Return the constraints on a callable's parameters; None when a required one is unknown."""
    found: list[Constraint] = []
    for item in inspect.signature(one).parameters.values():
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD) or item.name == "self":
            continue
        default = None if item.default is item.empty else repr(item.default)
        made = constraint(item.name, default, "", documented)
        if made is None and default is None and item.name not in IGNORED:
            return None
        if made is not None:
            found.append(made)
    return tuple(found)


def run(instance: Instance) -> tuple[Tensor | None, ...]:
    """Return the results of Keras; its exceptions propagate."""
    case = to_case(instance)
    return EagerKeras(case.program).run(case.feeds[0])


def runs(instance: Instance) -> bool:
    """Tell whether Keras runs the instance and returns tensors."""
    try:
        return bool(run(instance))
    except Exception:  # noqa: BLE001 - an operator raises anything when its parameters do not fit; tries are counted
        return False


def begin() -> None:
    """Import the library with the settings under which its programs run."""
    os.environ.update(prepare())
    Keras()


if __name__ == "__main__":
    begin()
    write(sys.argv[1:], operations(), runs)
