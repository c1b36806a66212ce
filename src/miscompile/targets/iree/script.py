"""The lines that a reproducer for IREE consists of, beside what all scripts have in common."""

from collections.abc import Sequence

from miscompile.targets.about import ScriptLines
from miscompile.targets.iree.flags import CAPABILITIES, CPU, LEVELS, OFF, flags
from miscompile.targets.placement import PLACEMENT

_RUN = (
    PLACEMENT
    + '''\
# Flags that stand in for passes, with the values that switch them off.
SWITCHES = {
@SWITCHES@
}


{% if placed %}
def run(level, off={{ nothing }}):
    """Compile with the flags `level`, the switches `off` among them off; return the outputs for each feed."""
    device = {{ where }}
    if device == "cuda":  # in place of what is for the CPU
        level = [flag for flag in level if flag not in @CPU@]
        level += ["--iree-hal-target-device=cuda", f"--iree-cuda-target={architecture()}"]
    bytecode = compiled([*level, *(f"--{name}={SWITCHES[name]}" for name in off or ())])
    context = runtime.SystemContext(config=runtime.Config("cuda" if device == "cuda" else "local-sync"))
{% else %}
def run(level, off=()):
    """Compile with the flags `level`, the switches `off` among them off; return the outputs for each feed."""
    bytecode = compiled([*level, *(f"--{name}={SWITCHES[name]}" for name in off)])
    context = runtime.SystemContext(config=runtime.Config("local-sync"))
{% endif %}
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, bytecode))
    function, found = context.modules.module["main"], []
    for feed in feeds:
        results = function(*(array_in(value.name, feed[value.name]) for value in model.graph.input))
        listed = results if isinstance(results, tuple) else (results,)
        found.append([array_out(array, value) for array, value in zip(listed, model.graph.output)])
    return found


{% if placed %}
def architecture():
    """Return the newest architecture that IREE describes and the device has, such as sm_80."""
    import ctypes

    driver, found = ctypes.CDLL("libcuda.so.1"), []
    driver.cuInit(0)
    for attribute in (75, 76):  # the compute capability: major and minor number
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0)
        found.append(value.value)
    return "sm_%d%d" % max(one for one in @CAPABILITIES@ if one <= tuple(found))


{% endif %}
def compiled(options):
    """Return the bytecode of the model."""
    with Session() as session:
        session.set_flags("--iree-input-type=onnx", *options)
        text = imported().encode() + b"\\0"
        with session.invocation() as invocation, Source.wrap_buffer(session, text) as source:
            invocation.enable_console_diagnostics()
            if not (invocation.parse_source(source) and invocation.execute()):
                raise RuntimeError("the compiler fails, for the reason that it prints")
            with Output.open_membuffer() as output:
                invocation.output_vm_bytecode(output)
                return bytes(output.map_memory())


def imported():
    """Return the model as MLIR text; the importer wants a type for every value."""
    model.graph.name = "main"
    typed = onnx.shape_inference.infer_shapes(model, data_prop=True)
    with ir.Context() as context:
        info = onnx_importer.ModelInfo(typed)
        module = info.create_module(context).operation
        onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
        return str(module)


def array_in(name, array):
    """Return an input as the runtime wants it{{ "; types that numpy lacks come as their bits" if types }}."""
{% if types %}
    if name in types:
        array = array.view(onnx.helper.tensor_dtype_to_np_dtype(types[name]))
{% endif %}
    return np.ascontiguousarray(array).reshape(np.shape(array))


def array_out(result, value):
    """Return an output as numbers. IREE's integers have no sign, so that the type of the model decides."""
    array = np.array(result)
    declared = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
{% if exotic %}
    if array.dtype.kind == "V" or array.dtype.name.startswith(("bfloat", "float8")):
        return array.astype(np.float32) if array.dtype.name == "bfloat16" else array.view(np.uint8)
{% endif %}
    return array.view(declared) if array.dtype.kind in "iu" and array.itemsize == declared.itemsize else array
'''
)
for _mark, _text in (
    ("@SWITCHES@", "\n".join(f'    "{name}": "{value}",' for name, value in OFF.items())),
    ("@CPU@", repr((*CPU, "--iree-opt-data-tiling=true")).replace("'", '"')),
    ("@CAPABILITIES@", repr(CAPABILITIES)),
):
    _RUN = _RUN.replace(_mark, _text)


def _listed(options: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{option}"' for option in options) + "]"


SCRIPT = ScriptLines(
    imports=(
        "from importlib import metadata",
        "from iree import runtime",
        "from iree.compiler import ir",
        "from iree.compiler.api import Output, Session, Source",
        "from iree.compiler.extras import onnx_importer",
    ),
    levels={level: _listed(flags(level)) for level in LEVELS},
    run=_RUN,
    versions='"iree", metadata.version("iree-base-compiler")',
)
