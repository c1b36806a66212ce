"""Constraints of ONNX's operators, from their schemas and the schemas' documentation of attributes.

Run as `python -m miscompile.harvest.constraints.onnx OUT SEED COUNT FIRST` to write instances; see
`miscompile.harvest.constraints.run`.
"""

import re
import sys
from typing import Any

import numpy as np
import onnx
from onnx import defs

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.check import check
from miscompile.harvest.constraints.documents import bounds_in, listed_in
from miscompile.harvest.constraints.generate import Constraint, Operation, ParameterKind
from miscompile.harvest.constraints.run import write
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held, Value
from miscompile.oracles.unspecified.pages.verdict import broken
from miscompile.producers.instances.evaluation import evaluated
from miscompile.producers.instances.onnx_model import to_model
from miscompile.producers.instances.onnx_values import attribute_kinds, to_array

_NAMES = {"float": "float32", "double": "float64"}
_KINDS: dict[str, ParameterKind] = {
    "int": "int",
    "float": "float",
    "string": "text",
    "ints": "ints",
    "floats": "floats",
}
_AXES = frozenset({"axis", "axes", "batch_axis", "time_axis"})
_FLAG = re.compile(
    r"\b(?:bool|boolean|0 or 1|1 means|\(0 or|if 1|whether|set to `?1|set to true|if true|it is true by default"
    r"|=1 indicates|0 is |0 - |0 \(false\)|1, which means|\w+`? ?(?:=|is) ?`?1`?(?: indicates)?,"
    r"|linear transformation before)",
    re.I,
)
"""A description of an integer attribute that stands for a truth value."""
_COUNTS = frozenset({"max_skip_count", "left_window_size", "right_window_size", "rotary_embedding_dim", "k"})
"""Integer attributes whose description reads like that of a truth value."""
_WHOLE = frozenset({"axes", "pads", "split", "shape", "repeats", "starts", "ends", "steps", "sizes", "k", "indices"})
"""Inputs with small integers that describe the other inputs."""


_TEXTS = Held(Tensor("string", np.array(["ab", "", "Ünïcode", "ab"], object)))


def operations() -> list[Operation]:
    """Return the newest version of every operator without bodies whose operands are dense tensors."""
    found = (operation_of(schema) for schema in defs.get_all_schemas() if not schema.deprecated)
    return sorted((one for one in found if one is not None), key=lambda one: one.api)


def operation_of(schema: Any) -> Operation | None:  # noqa: ANN401 - an extension type
    """Return the constraints of a schema; None if a required parameter is a body, a sequence or the like."""
    kinds = attribute_kinds(schema.name, schema.since_version, schema.domain)
    attributes = [
        _attribute(name, one, _KINDS[kinds[name]]) for name, one in schema.attributes.items() if kinds[name] in _KINDS
    ]
    if any(one.required and kinds[name] not in _KINDS for name, one in schema.attributes.items()):
        return None
    operands = [_operand(one, schema) for one in schema.inputs]
    if any(one.required and not one.dtypes for one in operands):
        return None
    api = f"{schema.domain}.{schema.name}" if schema.domain else schema.name
    known = tuple(one for one in operands if one.dtypes)
    return Operation("onnx", api, "node", (*known, *attributes), schema.since_version)


def _operand(formal: Any, schema: Any) -> Constraint:  # noqa: ANN401 - extension types
    texts = [text[7:-1] for text in formal.types if text.startswith("tensor(")]
    dtypes = tuple(sorted(_NAMES.get(text, text) for text in texts if _NAMES.get(text, text) in DTYPES))
    required = formal.option != defs.OpSchema.FormalParameterOption.Optional
    low, high = bounds_in(formal.description)
    small = formal.name.lower() in _WHOLE
    return Constraint(
        formal.name,
        ("tensor",),
        required,
        values=(_TEXTS,) if dtypes == ("string",) else (),
        dtypes=tuple(name for name in dtypes if name != "string") or dtypes,
        ranks=(1,) if small else (),
        low=low,
        high=high,
        place="called",
        group=f"{schema.name}.{formal.type_str}",
    )


def _attribute(name: str, one: Any, kind: ParameterKind) -> Constraint:  # noqa: ANN401 - an extension type
    text = str(one.description)
    default = _default(one)
    values: tuple[Value, ...] = ()
    if kind == "text":
        values = listed_in(text)
        values = (default, *values) if values and default is not None and default not in values else values
    elif kind == "int":
        values = _numbers(name, text)
    low, high = bounds_in(text)
    return Constraint(
        name,
        (kind,),
        bool(one.required),
        default,
        values=values,
        low=low,
        high=high,
        axis=name in _AXES,
        place="attribute",
    )


def _numbers(name: str, text: str) -> tuple[Value, ...]:
    """Return the integers that a description lists; none if it allows any."""
    if name in ("to", "dtype", "output_dtype", "output_datatype", "softmax_precision", "precision"):
        return (1, 10, 11, 16, 7, 6, 9)
    if name == "stash_type":
        return (1,)
    ticked = [int(number) for number in dict.fromkeys(re.findall(r"`(\d+)`(?: \(\w+\))?[:;,]", text))]
    if len(ticked) > 2:
        return tuple(ticked)
    only = re.search(r"(?:only|one of) (\d)(?: \(default\))?,? or (\d)", text)
    if only:
        return tuple(sorted(map(int, only.groups())))
    return (0, 1) if _FLAG.search(text) and name not in _COUNTS else ()


def _default(one: Any) -> Value:  # noqa: ANN401 - an extension type
    """Return the default of an attribute, None where there is none."""
    if not one.default_value.type:
        return None
    value = onnx.helper.get_attribute_value(one.default_value)
    plain = value.decode() if isinstance(value, bytes) else value
    return tuple(plain) if isinstance(plain, list) else plain if isinstance(plain, int | float | str) else None


def runs(instance: Instance) -> bool:
    """Tell whether onnx accepts the node, it fulfils its operator's page, and the reference evaluator runs it."""
    if broken(instance):
        return False
    try:
        model, feed = to_model(instance)
        check(model)
        names = [info.name for info in model.graph.inputs]
        evaluated(model, {name: to_array(value) for name, value in zip(names, feed, strict=True)})
    except ModelError:
        return False
    return True


if __name__ == "__main__":
    write(sys.argv[1:], operations(), runs)
