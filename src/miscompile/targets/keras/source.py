"""Instances of Keras as readable Python code that only needs Keras and numpy, for reports to its maintainers."""

from miscompile.codegen.layout import Expression, Group, array, assign, lay_out
from miscompile.codegen.literals import array_code, native, quoted
from miscompile.codegen.values import Dialect, spell_call, spell_drawn
from miscompile.core.tensor import Tensor
from miscompile.instances.code import decoded
from miscompile.instances.instance import Instance
from miscompile.instances.program import slots, to_case
from miscompile.instances.values import Drawn, Held, Name, Slot, Value, leaves

THEIRS = {
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
}
"""Keras' names of element types, where they differ from ONNX's."""

_FLAT = '''\
def flat(outputs):
    """Return the tensors of `outputs` in order, as arrays; types that numpy lacks are widened."""
    if isinstance(outputs, dict):
        outputs = list(outputs.values())
    if isinstance(outputs, (tuple, list)):
        return [array for output in outputs for array in flat(output)]
    value = np.asarray(keras.ops.convert_to_numpy(outputs))
    return [value if value.dtype.isbuiltin else value.astype(np.float32)]
'''

_WIDE = """\
if keras.config.backend() == "jax":  # which else takes 64-bit types for narrower ones
    import jax

    jax.config.update("jax_enable_x64", True)
"""

_WEIGHTS = '''\
RNG = np.random.default_rng(0)


def drawn(self, shape, dtype=None):
    """Draw weights with numpy: from the same seed, back ends of Keras would draw different ones."""
    bound = 1 / math.sqrt(max(1, math.prod(shape[:-1])))
    return keras.ops.convert_to_tensor(RNG.uniform(-bound, bound, tuple(shape)).astype(np.float32), dtype=dtype)


for name in ("RandomNormal", "TruncatedNormal", "RandomUniform", "VarianceScaling", "Orthogonal"):
    getattr(keras.initializers, name).__call__ = drawn
'''


def source(instance: Instance, *, constants: bool = False) -> str:
    """Return statements that define `model`, `inputs` and `flat`.

    `model` is a functional model, called with the list `inputs` of arrays and `training`; `flat` returns a flat list
    of arrays of a result. With `constants` all tensors except the first are constants of the model, as in `to_case`.
    Without tensors among its inputs `model` is a function.
    """
    case = to_case(instance, constants=constants)
    own = decoded(case.program.payload)
    given = array([_given(value) for value in _tensors(instance, constants)], tall=True)
    before = [*([_WIDE, ""] if is_wide(instance) else []), *([_WEIGHTS, ""] if own.form == "module" else [])]
    parts = [*before, _FLAT, "", _model(own), assign("inputs", given)]
    text = "\n".join(parts)
    imports = [name for name in ("base64", "math") if f"{name}." in text]
    foreign = ["import ml_dtypes"] if "ml_dtypes." in text else []
    head = [*(f"import {name}" for name in imports), *([""] if imports else []), "import keras", *foreign]
    return "\n".join([*head, "import numpy as np", "", text]) + "\n"


def _model(instance: Instance) -> str:
    """Return the statements that define `model`."""
    inputs = slots(instance)
    called = spell_call(instance.api, instance.args, instance.kwargs, _DIALECT)
    lines = ["keras.utils.set_random_seed(0)"]
    if instance.form == "module":
        lines.append(assign("operator", called))
        called = spell_call("operator", instance.inputs, instance.options, _DIALECT)
    if not inputs:
        body = lay_out(called, 4, 11)
        return "\n".join([*lines, "", "", "def model(inputs, training=False):", f"    return {body}", "", ""])
    for slot in inputs:
        kind = THEIRS.get(slot.dtype, slot.dtype)
        lines.append(f'{_slot(slot)} = keras.Input(batch_shape={slot.shape}, dtype="{kind}")')
    names = ", ".join(map(_slot, inputs))
    return "\n".join([*lines, assign("outputs", called), f"model = keras.Model([{names}], outputs)"])


def _tensors(instance: Instance, constants: bool) -> list[Held | Drawn]:
    """Return the inputs of the program in order; recipes as recipes."""
    called = (*instance.inputs, *instance.options.values())
    if instance.form != "module":
        called = (*instance.args, *instance.kwargs.values(), *called)
    found = [leaf for value in called for leaf in leaves(value) if isinstance(leaf, Held | Drawn)]
    return found[:1] if constants else found


def _given(value: Held | Drawn) -> Expression:
    """Return an expression for the array of a tensor; a recipe remains a recipe if numpy can draw such elements."""
    if isinstance(value, Held):
        return _array(value.tensor)
    return spell_drawn(value) if native(value.dtype) else _array(value.tensor())


def _array(value: Tensor) -> Expression:
    if native(value.dtype):
        return array_code(value)
    kind = THEIRS.get(value.dtype, value.dtype)
    return Group("np.asarray(", (array_code(Tensor("float32", value.numbers())),), f").astype(ml_dtypes.{kind})")


def _name(name: Name) -> str:
    return name.name if name.kind == "function" else quoted(THEIRS.get(name.name, name.name))


def _slot(slot: Slot) -> str:
    return f"x{slot.index}"


_DIALECT = Dialect(_array, _given, _name, _slot)


WIDE = frozenset({"float64", "int64", "uint64", "complex128"})
"""Element types that JAX only supports when they are enabled; then operations without an explicit type return them
too."""


def is_wide(instance: Instance) -> bool:
    """Tell whether an instance uses a 64-bit type."""
    values = (*instance.args, *instance.kwargs.values(), *instance.inputs, *instance.options.values())
    return any(_type_of(leaf) in WIDE for value in values for leaf in leaves(value))


def _type_of(leaf: Value) -> str:
    match leaf:
        case Slot() | Drawn():
            return leaf.dtype
        case Held(tensor):
            return tensor.dtype
        case Name("dtype", name) | str(name):
            return name
        case _:
            return ""
