"""The lines that a reproducer for TVM consists of, beside what all scripts have in common."""

import ast
import textwrap
from pathlib import Path

from miscompile.targets.about import ScriptLines
from miscompile.targets.placement import PLACEMENT
from miscompile.targets.tvm.about import ABOUT
from miscompile.targets.tvm.pipelines import (
    CPU_ONLY,
    CUDA_BUILD,
    FAST_BUILD,
    FULL_BUILD,
    GRAPH_PASSES,
    SLOW_SCHEDULES,
    UNCHECKED,
)
from miscompile.targets.tvm.relax.splice_transform import SPLICE
from miscompile.targets.tvm.relax.wrap_transform import WRAP
from miscompile.targets.tvm.sequences import NEEDS, PASSES


def _source(value: object) -> str:
    """Spell a plain value with the quotes that formatters use."""
    return repr(value).replace("'", '"')


def _call(name: str, given: tuple[object, ...]) -> str:
    return f"transform.{name}({', '.join(map(_source, given))})"


def _graph_passes() -> str:
    """Return the graph passes as a Python list, a line for each."""
    return "[\n" + "".join(f"        {_call(name, given)},\n" for name, given in GRAPH_PASSES) + "    ]"


def _splicing() -> str:
    """Return the source of the functions that splice a pattern into a module, with the imports that no script has."""
    here = Path(__file__).parent / "relax"
    functions = (here / "functions.py").read_text("utf-8")
    start = functions.index("def operands(")
    parts = [functions[start : functions.index("def substituted(")].strip()]
    for name in ("hazards", "intervals", "loops", "seams", "ranges", "splice"):
        text = (here / f"{name}.py").read_text("utf-8")
        parts.append(_body(text))
    return _SPLICE_IMPORTS + "\n\n\n" + "\n\n\n".join(parts)


def _body(text: str) -> str:
    """Return what follows the imports of a module."""
    imports = [one for one in ast.parse(text).body if isinstance(one, ast.Import | ast.ImportFrom)]
    return "\n".join(text.split("\n")[max(one.end_lineno or 0 for one in imports) :]).strip()


def _wrapping() -> str:
    """Return the source of the functions that wrap parts of a module, with the imports that no script has."""
    text = (Path(__file__).parent / "relax" / "functions.py").read_text("utf-8")
    head, _, rest = text[text.index("import random") :].partition("\n\n\n")
    return "\n".join(line for line in head.split("\n") if line != "from tvm import relax") + "\n\n\n" + rest


_SPLICE_IMPORTS = """\
import base64
import random
import re
from collections.abc import Callable, Iterable
from math import prod
from typing import Any, NamedTuple, NoReturn

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Constant, GlobalVar
from tvm.script.parser.core import entry as script_parser"""

_NAMES = "\n".join(textwrap.wrap(" ".join(ABOUT.passes), 104, break_on_hyphens=False))

_GIVEN = {name: ", ".join(map(_source, given)) for name, given in PASSES.items() if given}

_LINES = f'''\
{{% set used = [faulty.level] + ([reference.level] if reference is not none else []) %}}
{{% set applied = faulty.transform.name if faulty.transform else "" %}}
{{% set wrapped = applied == "{WRAP}" %}}
{{% if "off" in used %}}
# All optional passes; the level "off" does without them.
OPTIONAL = """
{textwrap.indent(_NAMES, "    ")}
""".split()


{{% endif %}}
{{% set spliced = applied == "{SPLICE}" %}}
{{% if wrapped or faulty.sequence or told %}}
def run(level, off=None):
    """Build at `level` without the passes `off`; return the outputs for each feed.

    The build that is at fault says which passes are off, if only that none is; it alone {{{{
        "has functions" if wrapped else "runs the sequence of passes" if faulty.sequence else "is for the device" }}}}.
    """
{{% if placed %}}
    device = {{{{ where }}}}
{{% endif %}}
    changed, off = off is not None, off or ()
{{% else %}}
def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
{{% if placed %}}
    device = {{{{ where }}}}
{{% endif %}}
{{% endif %}}
    target = tvm.target.Target({_source(FULL_BUILD)} if level == "native" else {_source(FAST_BUILD)})
{{% set default = 'relax.get_pipeline("default")' if faulty.sequence else '"default"' %}}
{{% if placed %}}
    if device == "cuda":
        arch = tvm.target.Target.from_device(tvm.cuda(0)).attrs["arch"]
        target = tvm.target.Target({{**CUDA, "arch": arch}}, host=target)
        pipeline = cuda_pipeline(level, target)
    else:
        pipeline = relax.get_pipeline("default") if level in @SLOW@ else relax.get_default_pipeline(target)
{{% else %}}
    pipeline = {{{{ default }}}} if level in ("off", "default") else relax.get_default_pipeline(target)
{{% endif %}}
{{% if "full" in used or "native" in used %}}
    if level in ("full", "native"):
{{% if placed %}}
        unfit = {_source(list(CPU_ONLY.values()))} if device == "cuda" else []
        chosen = [one for one in graph_passes() if one.info.name not in unfit]
        pipeline = tvm.transform.Sequential([*chosen, pipeline])
{{% else %}}
        pipeline = tvm.transform.Sequential([*graph_passes(), pipeline])
{{% endif %}}
{{% endif %}}
{{% if faulty.sequence %}}
    if changed:
        pipeline = tvm.transform.Sequential([*sequence(), pipeline])
{{% endif %}}
{{% if "off" in used %}}
    off = OPTIONAL if level == "off" else off
{{% endif %}}
    empty = {{name: list(value.shape) for name, value in feeds[0].items() if not value.size}}  # else taken for unknown
    config = {{"{UNCHECKED}": level == "off"}}
    module = from_onnx(model, shape_dict=empty)
{{% if spliced %}}
    module = splice_all(module, patterns(), **SPLICE)
    if not SHOWN:
        SHOWN.append(module.script(show_meta=False))
        print(SHOWN[0])
{{% endif %}}
{{% if wrapped %}}
    if changed:
        module = wrap(module{{% for key, value in faulty.transform.options %}}, {{{{
            key }}}}={{{{ '"%s"' % value if key == "rewrite" else value }}}}
        {{%- endfor %}})
{{% endif %}}
    with tvm.transform.PassContext(opt_level=3, disabled_pass=list(off), config=config):
{{% if "compiled" in used %}}
        mode = "compiled" if level == "compiled" else "bytecode"
        executable = relax.build(module, target, relax_pipeline=pipeline, exec_mode=mode)
{{% else %}}
        executable = tvm.compile(module, target=target, relax_pipeline=pipeline)
{{% endif %}}
{{% if placed %}}
    place = tvm.cuda(0) if device == "cuda" else tvm.cpu()
    machine = relax.VirtualMachine(executable, place)
    results = [machine["main"](*[to_tvm(*item).copyto(place) for item in feed.items()]) for feed in feeds]
{{% else %}}
    machine = relax.VirtualMachine(executable, tvm.cpu())
    results = [machine["main"](*map(to_tvm, feed, feed.values())) for feed in feeds]
{{% endif %}}
    return [[to_numpy(value) for value in (result if len(model.graph.output) > 1 else [result])] for result in results]


{{% if placed %}}
# Limits that every device has had for long.
CUDA = {_source(CUDA_BUILD)}


def cuda_pipeline(level, target):
    """Return the passes that lower for a GPU: TVM's own, or for the plain levels a thread for each element."""
    if level not in @SLOW@:
        return relax.get_default_pipeline(target)
    plain = [
        relax.backend.DispatchSampling(),
        relax.backend.DispatchSortScan(),
        relax.transform.LegalizeOps(),
        dlight.ApplyDefaultSchedule(dlight.gpu.Fallback()),
        relax.get_pipeline("default"),
    ]

    @tvm.transform.module_pass(opt_level=0)
    def lower(module, context):
        with target:
            return tvm.transform.Sequential(plain)(module)

    return lower


def compile_exactly():
    """Take the option of fast mathematics away, which TVM gives to NVIDIA's compilers."""
    os.environ["TVM_CUDA_NVCC_NO_FAST_MATH"] = "1"
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        os.environ["TVM_CUDA_COMPILE_MODE"] = "nvcc"
        return
    original = nvrtc.nvrtcCompileProgram

    def compile_program(program, count, options):
        kept = [option for option in options if option != b"--use_fast_math"]
        return original(program, len(kept), kept)

    nvrtc.nvrtcCompileProgram = compile_program


compile_exactly()


{{% endif %}}
{{% if faulty.sequence %}}
def sequence():
    """Passes in the order that was drawn, with what they presuppose."""
    transform = relax.transform
    return [
{{% set given = {_GIVEN} %}}
{{% set needs = {NEEDS} %}}
{{% set seen = namespace(names=[], gathered=false) %}}
{{% for name in faulty.sequence %}}
{{% for one in needs.get(name, ()) + (name,) %}}
{{% if one == name or one not in seen.names %}}
{{% set seen.names = seen.names + [one] %}}
        transform.{{{{ one }}}}({{{{ given.get(one, "") }}}}),
{{% endif %}}
{{% endfor %}}
{{% set seen.gathered = name == "FuseOps" or (seen.gathered and name != "FuseTIR") %}}
{{% endfor %}}
{{% if seen.gathered %}}
        transform.FuseTIR(),
{{% endif %}}
    ]


{{% endif %}}
{{% if "full" in used or "native" in used %}}
def graph_passes():
    """Optional passes on the graph, before the pipeline that `tvm.relax` has for the CPU."""
    transform = relax.transform
    return {_graph_passes()}


{{% endif %}}
def to_tvm(name, array):
    """Copy an input{{{{ ", with the element type that numpy lacks if it has one" if types }}}}."""
{{% if types %}}
    array = array.view(onnx.helper.tensor_dtype_to_np_dtype(types[name])) if name in types else array
{{% endif %}}
    return tvm.runtime.tensor(array)


def to_numpy(value):
    """Return an output as numbers{{{{ "; bits of what numpy lacks" if exotic }}}}. A shape is a tuple in Relax."""
    if isinstance(value, tuple):
        return np.array(list(value), dtype=np.int64)
{{% if exotic %}}
    array = value.numpy()
    array = array.view(np.uint8) if array.dtype.name.startswith("float8") else array
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array
{{%- else %}}
    return value.numpy()
{{%- endif %}}
'''

_PRELUDE_LINES = f"""\
{{% if placed %}}
from tvm.s_tir import dlight
{{% endif %}}
{{% set applied = faulty.transform.name if faulty.transform else "" %}}
{{% if applied == "{WRAP}" %}}
{{% raw %}}
{_wrapping()}
{{%- endraw %}}
{{% endif %}}
{{% if applied == "{SPLICE}" %}}
{{{{ faulty.transform | through("miscompile.targets.tvm.relax.splice_transform:spelled") }}}}
SHOWN = []  # the spliced module, once


{{% raw %}}
{_splicing()}
{{%- endraw %}}
{{% endif %}}
"""

_PRELUDE = PLACEMENT + _PRELUDE_LINES
_RUN = PLACEMENT + _LINES.replace("@SLOW@", _source(SLOW_SCHEDULES))

SCRIPT = ScriptLines(
    setup=("import os", "", 'os.environ["TVM_NUM_THREADS"] = "1"', ""),
    imports=("import tvm", "from tvm import relax", "from tvm.relax.frontend.onnx import from_onnx"),
    exotic_imports=("import ml_dtypes",),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    prelude=_PRELUDE,
    versions='"tvm", tvm.__version__',
)
