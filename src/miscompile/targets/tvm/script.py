"""The parts of standalone scripts for TVM and its front end, besides the runners."""

import textwrap

from miscompile.targets.about import FrontLines, ScriptLines
from miscompile.targets.presentations import PLACEMENT
from miscompile.targets.tvm.about import ABOUT
from miscompile.targets.tvm.relax.transforms import SPLICE, WRAP

_NAMES = "\n".join(textwrap.wrap(" ".join(ABOUT.passes), 104, break_on_hyphens=False))

_KINDS = f"""\
{{% set used = [faulty.level] + ([reference.level] if reference is not none else []) %}}
{{% set presented = faulty.transform.name if faulty.transform else "" %}}
{{% set wrapped, spliced = presented == "{WRAP}", presented == "{SPLICE}" %}}
"""

_PRELUDE = (
    PLACEMENT
    + _KINDS
    + f"""\
{{% if placed %}}
compile_exactly()
{{% endif %}}
{{% if spliced %}}
{{{{ faulty.transform | through("miscompile.targets.tvm.relax.transforms:spelled") }}}}
SHOWN = []  # the spliced module, once
{{% endif %}}
{{% if "off" in used %}}
# All optional passes; the level "off" does without them.
OPTIONAL = \"\"\"
{textwrap.indent(_NAMES, "    ")}
\"\"\".split()
{{% endif %}}
{{% if faulty.sequence %}}
# Passes in the order that was drawn, with what they presuppose and their arguments.
SEQUENCE = {{{{ faulty.sequence | through("miscompile.targets.tvm.sequences:spelled") }}}}
{{% endif %}}
"""
)

_RUN = (
    PLACEMENT
    + _KINDS
    + '''\
{% if wrapped or faulty.sequence or told %}
def run(level, off=None):
    """Build at `level` without the passes `off`; return the outputs for each feed.

    The build that is at fault says which passes are off, if only that none is; it alone {{
        "has functions" if wrapped else "runs the sequence of passes" if faulty.sequence else "is for the device" }}.
    """
{% if placed %}
    device = {{ where }}
{% endif %}
    {{ "changed, off = off is not None," if wrapped or faulty.sequence else "off =" }} off or ()
{% else %}
def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
{% if placed %}
    device = {{ where }}
{% endif %}
{% endif %}
    target = cpu_target(level)
{% if placed %}
    if device == "cuda":
        target = cuda_target(target, tvm.target.Target.from_device(tvm.cuda(0)).attrs["arch"])
        pipeline = behind(cuda_passes(level), cuda_lowering(level, target))
    else:
        pipeline = behind(graph_passes(level), lowering(level, target))
{% elif "full" in used or "native" in used %}
    pipeline = behind(graph_passes(level), lowering(level, target))
{% else %}
    pipeline = lowering(level, target)
{% endif %}
{% if faulty.sequence %}
    pipeline = behind(SEQUENCE, pipeline) if changed else pipeline
{% endif %}
{% if "off" in used %}
    off = OPTIONAL if level == "off" else off
{% endif %}
    module = read_model(model)
{% if spliced %}
    module = splice_all(module, patterns(), **SPLICE)
    if not SHOWN:
        SHOWN.append(module.script(show_meta=False))
        print(SHOWN[0])
{% endif %}
{% if wrapped %}
    if changed:
        module = wrap(module{% for key, value in faulty.transform.options %}, {{
            key }}={{ '"%s"' % value if key == "rewrite" else value }}
        {%- endfor %})
{% endif %}
    executable = build_module(module, level, off, target, pipeline)
{% if placed %}
    place = tvm.cuda(0) if device == "cuda" else tvm.cpu()
{% else %}
    place = tvm.cpu()
{% endif %}
    machine = relax.VirtualMachine(executable, place)
    return [[seen(value) for value in call(machine, arrays(feed), place)] for feed in feeds]


def arrays(feed):
    """Return the arrays of a feed{{ ", with the element types that numpy lacks" if types }}."""
{% if types %}
    return [to_array(words, types.get(name, 0)) for name, words in feed.items()]
{% else %}
    return list(feed.values())
{% endif %}


def seen(value):
    """Return an output as numbers{{ "; brain floats are widened, other foreign types are bits" if exotic }}."""
{% if exotic %}
    array = from_tvm(value)
    array = array.view(np.uint8) if array.dtype.name.startswith(("float8", "float4")) else array
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array
{%- else %}
    return from_tvm(value)
{%- endif %}
'''
)

_RELAX = ("text", "functions", "hazards", "intervals", "loops", "seams", "ranges", "splice")

SCRIPT = ScriptLines(
    sources=(
        "miscompile.targets.tvm.pipelines",
        "miscompile.targets.tvm.runner",
        *(f"miscompile.targets.tvm.relax.{name}" for name in _RELAX),
    ),
    setup=("import os", "", 'os.environ["TVM_NUM_THREADS"] = "1"', ""),
    imports=("import ml_dtypes", "import tvm", "from tvm import relax"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    prelude=_PRELUDE,
    versions='"tvm", tvm.__version__',
)


TORCH = FrontLines(
    setup=("import os", "", 'os.environ["TVM_FFI_DISABLE_TORCH_C_DLPACK"] = "1"  # would be compiled first', ""),
    sources=(
        "miscompile.targets.torch.runner",
        "miscompile.targets.tvm.torch_runner",
        "miscompile.targets.tvm.pipelines",
        "miscompile.targets.tvm.runner",
    ),
    imports=("import tvm", "from tvm import relax"),
    run='''\
def converted(model, inputs):
    """Export the model, import it into Relax, compile it; return its outputs."""
    module, level = import_exported(export_module(model, tuple(inputs))), LEVELS["full"]
    target = cpu_target(level)
    executable = build_module(module, level, (), target, lowering(level, target))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    arrays = [to_array(*words_of(value)) for value in inputs]
    return [widened(from_tvm(output)) for output in call(machine, arrays, tvm.cpu())]


def widened(array):
    """Return an output; types that numpy lacks are widened."""
    return array.astype("float32") if "float" in array.dtype.name and array.dtype.kind != "f" else array
''',
    versions='"torch", torch.__version__, "tvm", tvm.__version__',
)
