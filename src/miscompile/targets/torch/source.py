"""Instances of torch as readable Python code that only needs torch and numpy, for reports to its maintainers."""

import textwrap

from miscompile.codegen.layout import Expression, Group, array, assign, call, lay_out
from miscompile.codegen.literals import array_code, native
from miscompile.codegen.values import Dialect, spell_call, spell_drawn
from miscompile.core.tensor import Tensor
from miscompile.instances.code import decoded
from miscompile.instances.instance import Instance
from miscompile.instances.program import slots, to_case
from miscompile.instances.values import Drawn, Held, Name, Slot, leaves

_FLAT = '''\
def flat(outputs):
    """Return the tensors of `outputs` in order, as arrays; types that numpy lacks are widened."""
    if isinstance(outputs, dict):
        outputs = list(outputs.values())
    if isinstance(outputs, (tuple, list)):
        return [array for output in outputs for array in flat(output)]
    value = outputs.detach().resolve_conj().resolve_neg()
    widened = value.dtype == torch.bfloat16 or "float8" in str(value.dtype)
    return [np.array(value.float() if widened else value)]
'''


def source(instance: Instance, *, constants: bool = False) -> str:
    """Return statements that define `model`, `inputs` and `flat`.

    `model` is a module in eval mode that calls the operator, `inputs` the list of its tensors; `flat` returns a flat
    list of arrays of a result. With `constants` all tensors except the first are constants of the model, as in
    `to_case`.
    """
    case = to_case(instance, constants=constants)
    own = decoded(case.program.payload)
    held = _Held()
    forward = _forward(own, held)
    lines = [f"x{slot.index}" for slot in slots(own)]
    init = _init(own, held)
    parts = [
        "class Operator(torch.nn.Module):",
        *([textwrap.indent(init, "    "), ""] if init else []),
        f"    def forward({', '.join(['self', *lines])}):",
        f"        return {lay_out(forward, 8, 15)}",
        "",
        "",
        _FLAT.rstrip(),
        "",
        "",
        "model = Operator().eval()",
        assign("inputs", array([_given(value) for value in _tensors(instance, constants)], tall=True)),
    ]
    text = "\n".join(parts)
    imports = ["import base64", ""] if "base64.b64decode(" in text else []
    return "\n".join([*imports, "import numpy as np", "import torch", "", "", text]) + "\n"


def _tensors(instance: Instance, constants: bool) -> list[Held | Drawn]:
    """Return the inputs of the program in order; recipes as recipes."""
    called = (*instance.inputs, *instance.options.values())
    if instance.form != "module":
        called = (*instance.args, *instance.kwargs.values(), *called)
    found = [leaf for value in called for leaf in leaves(value) if isinstance(leaf, Held | Drawn)]
    return found[:1] if constants else found


class _Held:
    """The constants of the model, and the dialect in which they have names."""

    def __init__(self) -> None:
        self.buffers: list[Expression] = []
        self.dialect = Dialect(
            lambda value: self._name(spell_tensor(value)), lambda value: self._name(_given(value)), spell_name, _slot
        )

    def _name(self, expression: Expression) -> str:
        self.buffers.append(expression)
        return f"self.constant{len(self.buffers) - 1}"


def _forward(instance: Instance, held: _Held) -> Expression:
    """Return the call of the operator."""
    if instance.form == "module":
        return spell_call("self.inner", instance.inputs, instance.options, held.dialect)
    if instance.form == "method" and instance.args and isinstance(instance.args[0], Slot):
        called = f"{_slot(instance.args[0])}.{instance.operator}"
        return spell_call(called, instance.args[1:], instance.kwargs, held.dialect)
    return spell_call(instance.api, instance.args, instance.kwargs, held.dialect)


def _init(instance: Instance, held: _Held) -> str:
    """Return the constructor; empty when the model has no constants."""
    buffers = [call("self.register_buffer", f'"constant{place}"', value) for place, value in enumerate(held.buffers)]
    lines = [lay_out(buffer, 4) for buffer in buffers]
    if instance.form == "module":
        made = spell_call(instance.api, instance.args, instance.kwargs, _CONSTRUCTED)
        lines = ["torch.manual_seed(0)", f"self.inner = {lay_out(made, 4, 17)}", *lines]
    if not lines:
        return ""
    return "\n".join(["def __init__(self):", "    super().__init__()", *(f"    {line}" for line in lines)])


def _given(value: Held | Drawn) -> Expression:
    """Return an expression for a tensor; a recipe remains a recipe if numpy can draw such elements."""
    if isinstance(value, Held):
        return spell_tensor(value.tensor)
    if native(value.dtype):
        return call("torch.tensor", spell_drawn(value))
    return spell_tensor(value.tensor())


def spell_tensor(value: Tensor) -> Expression:
    """Return an expression for a tensor of torch, exact to the bit except for the payload of a NaN."""
    if native(value.dtype):
        return call("torch.tensor", array_code(value))
    kind = f"torch.{FOREIGN.get(value.dtype, value.dtype)}"
    if value.dtype == "float8e8m0":
        return Group("torch.tensor(", (array_code(Tensor("uint8", value.array)),), f").view({kind})")
    return Group("torch.tensor(", (array_code(Tensor("float32", value.numbers())),), f").to({kind})")


def spell_name(name: Name) -> str:
    """Return torch's spelling of a named object."""
    if name.kind == "function":
        return name.name
    if name.kind == "device":
        return f'torch.device("{name.name}")'
    return f"torch.{FOREIGN.get(name.name, name.name)}"


def _slot(slot: Slot) -> str:
    return f"x{slot.index}"


_CONSTRUCTED = Dialect(spell_tensor, _given, spell_name, _slot)
"""Returns the spelling of a module's parameter."""


FOREIGN = {
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
}
"""Element types that numpy lacks, by ONNX's names and by torch's."""
