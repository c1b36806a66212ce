"""Constraints of PyTorch's operators, from signatures, annotations, defaults and docstrings.

Run as `python -m miscompile.harvest.libraries.hooks.constraints_torch OUT SEED COUNT FIRST [BASES]`; see
`miscompile.harvest.constraints.run`.
"""

import inspect
import sys
from typing import Any

from miscompile.core.tensor import Tensor
from miscompile.harvest.constraints.documents import (
    IGNORED,
    DocumentedParameter,
    constraint,
    documented_parameters,
    head_of,
)
from miscompile.harvest.constraints.generate import Constraint, Operation, ParameterPlace
from miscompile.harvest.constraints.run import write
from miscompile.harvest.libraries.hooks.torch_names import modules, operators
from miscompile.instances.instance import Instance
from miscompile.instances.program import to_case
from miscompile.targets.torch.adapter import EagerTorch, quiet


def operations() -> list[Operation]:
    """Return the functions and modules of PyTorch whose required parameters are known."""
    found = [_function(path.api, one) for one, path in operators().items() if path.form == "function"]
    found += [_module(path, one) for one, path in modules().items()]
    return sorted((one for one in found if one is not None), key=lambda one: one.api)


def _function(api: str, one: Any) -> Operation | None:  # noqa: ANN401 - a function, often not Python's
    parameters = parameters_of(one, documented_parameters(inspect.getdoc(one) or ""))
    return None if parameters is None else Operation("torch", api, "function", parameters)


def _module(api: str, one: Any) -> Operation | None:  # noqa: ANN401 - a class
    doc = inspect.getdoc(one) or ""
    made = parameters_of(one, documented_parameters(doc))
    shapes = {"input": DocumentedParameter("Tensor", doc.partition("Shape:")[2].partition("Output")[0])}
    called = parameters_of(one.forward, shapes, "called")
    if made is None or called is None or not called:
        return None
    names = {item.name for item in made}
    return Operation("torch", api, "module", (*made, *(item for item in called if item.name not in names)))


def parameters_of(
    one: Any,  # noqa: ANN401 - a function or class, often not Python's
    documented: dict[str, DocumentedParameter],
    place: ParameterPlace = "given",
) -> tuple[Constraint, ...] | None:
    """Return the constraints on a callable's parameters; None when a required one is unknown."""
    try:
        signature = inspect.signature(one).parameters.values()
        given = [
            (item.name, None if item.default is item.empty else repr(item.default), _spoken(item.annotation))
            for item in signature
            if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD) and item.name != "self"
        ]
    except (ValueError, TypeError):
        given = [(name, default, "") for name, default, _ in head_of(inspect.getdoc(one) or "")]
    if not given:
        return None
    found: list[Constraint] = []
    for name, default, annotation in given:
        item = constraint(name, default, annotation, documented, place)
        if item is None and default is None and name not in IGNORED:
            return None
        if item is not None:
            found.append(item)
    return tuple(found)


def _spoken(annotation: object) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def run(instance: Instance) -> tuple[Tensor | None, ...]:
    """Return the results of PyTorch; its exceptions propagate."""
    case = to_case(instance)
    return EagerTorch(case.program.payload).run(case.feeds[0])


def runs(instance: Instance) -> bool:
    """Tell whether PyTorch runs the instance and returns tensors."""
    try:
        return bool(run(instance))
    except Exception:  # noqa: BLE001 - an operator raises anything when its parameters do not fit; tries are counted
        return False


if __name__ == "__main__":
    quiet()
    write(sys.argv[1:], operations(), runs)
