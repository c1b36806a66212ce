"""The lines that a reproducer for TVM consists of, beside what all scripts have in common."""

import textwrap

from miscompile.targets.about import ScriptLines
from miscompile.targets.tvm.about import ABOUT
from miscompile.targets.tvm.pipelines import FAST_BUILD, FULL_BUILD, GRAPH_PASSES, UNCHECKED


def _source(value: object) -> str:
    """Spell a plain value with the quotes that formatters use."""
    return repr(value).replace("'", '"')


def _calls() -> str:
    """Return the graph passes as a Python list, a line for each."""
    calls = [f"transform.{name}({', '.join(map(_source, given))})" for name, given in GRAPH_PASSES]
    return "[\n" + "".join(f"        {call},\n" for call in calls) + "    ]"


_NAMES = "\n".join(textwrap.wrap(" ".join(ABOUT.passes), 104, break_on_hyphens=False))

_RUN = f'''\
{{% set used = [faulty.level] + ([reference.level] if reference is not none else []) %}}
{{% if "off" in used %}}
# All optional passes; the level "off" does without them.
OPTIONAL = """
{textwrap.indent(_NAMES, "    ")}
""".split()


{{% endif %}}
def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    target = tvm.target.Target({_source(FULL_BUILD)} if level == "native" else {_source(FAST_BUILD)})
    pipeline = "default" if level in ("off", "default") else relax.get_default_pipeline(target)
{{% if "full" in used or "native" in used %}}
    if level in ("full", "native"):
        pipeline = tvm.transform.Sequential([*graph_passes(), pipeline])
{{% endif %}}
{{% if "off" in used %}}
    off = OPTIONAL if level == "off" else off
{{% endif %}}
    empty = {{name: list(value.shape) for name, value in feeds[0].items() if not value.size}}  # else taken for unknown
    config = {{"{UNCHECKED}": level == "off"}}
    with tvm.transform.PassContext(opt_level=3, disabled_pass=list(off), config=config):
        executable = tvm.compile(from_onnx(model, shape_dict=empty), target=target, relax_pipeline=pipeline)
    machine = relax.VirtualMachine(executable, tvm.cpu())
    results = [machine["main"](*map(to_tvm, feed, feed.values())) for feed in feeds]
    return [[to_numpy(value) for value in (result if len(model.graph.output) > 1 else [result])] for result in results]


{{% if "full" in used or "native" in used %}}
def graph_passes():
    """Optional passes on the graph, before the pipeline that `tvm.relax` has for the CPU."""
    transform = relax.transform
    return {_calls()}


{{% endif %}}
def to_tvm(name, array):
    """Copy an input{{{{ ", with the element type that numpy lacks if it has one" if types }}}}."""
{{% if types %}}
    array = array.view(ml_dtypes.bfloat16) if types.get(name) == TensorProto.BFLOAT16 else array
{{% endif %}}
    return tvm.runtime.tensor(array)


def to_numpy(value):
    """Return an output as numbers{{{{ "; brain floats are widened" if exotic }}}}. A shape is a tuple in Relax."""
    if isinstance(value, tuple):
        return np.array(list(value), dtype=np.int64)
{{% if exotic %}}
    array = value.numpy()
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array
{{%- else %}}
    return value.numpy()
{{%- endif %}}
'''

SCRIPT = ScriptLines(
    setup=("import os", "", 'os.environ["TVM_NUM_THREADS"] = "1"', ""),
    imports=("import tvm", "from tvm import relax", "from tvm.relax.frontend.onnx import from_onnx"),
    exotic_imports=("import ml_dtypes",),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"tvm", tvm.__version__',
)
