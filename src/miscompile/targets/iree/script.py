"""The parts of standalone scripts for IREE, besides the runner and the parts common to all scripts."""

from miscompile.targets.about import ScriptLines
from miscompile.targets.iree.flags import LEVELS
from miscompile.targets.presentations import PLACEMENT

_RUN = (
    PLACEMENT
    + '''\
{% if placed %}
def run(level, off={{ nothing }}):
    """Compile at `level` with the flags `off` switched off; return the outputs for each feed."""
    device = {{ where }}
    options = flags(level, off or (), cuda_flags(capability()) if device == "cuda" else CPU)
    context = load(compile_text(import_text(model.SerializeToString()), options), runtime.Config(DRIVERS[device]))
{% else %}
def run(level, off=()):
    """Compile at `level` with the flags `off` switched off; return the outputs for each feed."""
    bytecode = compile_text(import_text(model.SerializeToString()), flags(level, off))
    context = load(bytecode, runtime.Config("local-sync"))
{% endif %}
    kinds = [output.type.tensor_type.elem_type for output in model.graph.output]
    results = [call(context, arrays(feed)) for feed in feeds]
    return [[seen(from_device(*item)) for item in zip(result, kinds)] for result in results]


{% if placed %}
def capability():
    """Return the compute capability of the device: major and minor number."""
    driver, found = ctypes.CDLL("libcuda.so.1"), []
    driver.cuInit(0)
    for attribute in (75, 76):
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0)
        found.append(value.value)
    return tuple(found)


{% endif %}
def arrays(feed):
    """Return the arrays of a feed{{ ", with the element types that numpy lacks" if types }}."""
    return [to_array(array, {{ "types.get(name, 0)" if types else "0" }}) for name, array in feed.items()]


def seen(array):
    """Return an output as numbers{{ "; brain floats are widened, other foreign types are bits" if exotic }}."""
{% if exotic %}
    if array.dtype.name == "bfloat16":
        return array.astype(np.float32)
    return array.view(np.uint8) if array.dtype.name.startswith("float8") else array
{%- else %}
    return array
{%- endif %}
'''
)

SCRIPT = ScriptLines(
    sources=("miscompile.targets.iree.flags", "miscompile.targets.iree.runner"),
    imports=("import ctypes", "from importlib import metadata", "from iree import runtime"),
    levels={level: f'"{level}"' for level in LEVELS},
    run=_RUN,
    versions='"iree", metadata.version("iree-base-compiler")',
    prelude="configure()",
)
