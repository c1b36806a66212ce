"""The parts of standalone scripts for OpenVINO and its front ends, besides the runners.

A script that switches passes contains `switch.cpp`, because OpenVINO's Python package has no switch. The script
compiles it into a folder that it deletes; the worker's library, which also counts, is kept in a cache (`observer.py`).
"""

import textwrap
from pathlib import Path

from miscompile.targets.about import FrontLines, ScriptLines
from miscompile.targets.openvino.about import ABOUT, FRAMES, PASSES
from miscompile.targets.presentations import PLACEMENT, PRESENTED

_NAMES = "\n".join(f"    {line}" for line in textwrap.wrap(" ".join((*PASSES, *FRAMES)), 112))

_SWITCHED = """\
{% set guards = presented == "guarded" and not exotic and not placed %}
{% set presented = presented if presented in ("reload", "external") else "" %}
{% set nothing = "None" if (presented or guards) and not alike else nothing %}
{% set everything = faulty.level == "off" or (reference is not none and reference.level == "off") %}
{% set named = culprits or faulty.disabled or (reference is not none and reference.disabled) %}
{% set switched = everything or named %}
"""

_PRELUDE = (
    PLACEMENT
    + PRESENTED
    + _SWITCHED
    + '''\
{% if switched %}
SWITCH = r"""
{% raw %}
'''
    + Path(__file__).with_name("switch.cpp").read_text("utf-8")
    + '''\
{% endraw %}
"""


def preload_switch():
    """Compile SWITCH and restart this process with it, unless that has been done."""
    if "SWITCH_FOLDER" in os.environ:
        shutil.rmtree(os.environ.pop("SWITCH_FOLDER"))
        return
    home = os.path.dirname(openvino.__file__)
{% if not named and reference is none %}
    if not os.path.isdir(home + "/include"):
        return  # a release without headers has no switch, and level off has all passes
{% endif %}
    folder = tempfile.mkdtemp()
    library = next(name for name in os.listdir(home + "/libs") if name.startswith("libopenvino.so."))
    command = compile_command([os.environ.get("CXX", "g++")], home + "/include", library)
    command += ["-x", "c++", "-", "-o", folder + "/switch.so", "-ldl"]
    subprocess.run(command, input=SWITCH.encode(), check=True)
    os.environ.update(SWITCH_FOLDER=folder, LD_PRELOAD=folder + "/switch.so")
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


preload_switch()
{% if everything %}

# All that is optional.
OPTIONAL = """
'''
    + _NAMES
    + '''
""".split()
{% endif %}
{% endif %}
'''
)

_RUN = (
    PLACEMENT
    + PRESENTED
    + _SWITCHED
    + '''\
{% set further = ["device"] if placed else [] %}
{% set further = further + ["threads=%d" % faulty.threads] if faulty.threads != 1 else further %}
{% set kinds = "[types.get(name, 0) for name in feed]" if types else "[0] * len(feed)" %}
{% set build = "level" ~ (", " if further) ~ further | join(", ") %}
def run(level, off={{ nothing }}):
    """Compile at `level` without the passes `off`; return the outputs for each feed."""
{% if placed %}
    device = {{ where }}
{% endif %}
{% if switched and not named and reference is none %}
    if hasattr(ctypes.CDLL(None), "skip_passes"):
        skip(OPTIONAL if level == "off" else ())
{% elif switched %}
    skip([{{ '*(OPTIONAL if level == "off" else ()), ' if everything }}*(off{{ " or ()" if nothing == "None" }})])
{% endif %}
    core, payload = ov.Core(), model.SerializeToString()
{% if presented == "external" or (presented and given.stage == "read") %}
    if {{ sees }}:
        with tempfile.TemporaryDirectory() as folder:
{% if presented == "external" %}
            # The file of the model, and beside it one with its initialisers.
            path = f"{folder}/model.onnx"
            store(onnx.load_model_from_string(payload), path, {{ given.seed }}, shapes_too=True)
            read = core.read_model(path)
{% else %}
            read = read_saved(core, payload, folder)
{% endif %}
    else:
        read = core.read_model(payload)
{% else %}
    read = core.read_model(payload)
{% endif %}
{% if presented == "reload" and given.stage == "compiled" %}
    compiled = (compile_reloaded if {{ sees }} else compile_read)(core, read, {{ build }})
{% else %}
    compiled = compile_read(core, read, {{ build }})
{% endif %}
    request, results = compiled.create_infer_request(), []
    numbers = places(list(feeds[0]), read, payload)
{% if guards %}
    count = len(model.graph.output)
{% set before = dict(reference.transform.options) if reference is not none and reference.transform else {} %}
{% if before %}
    fill = {{ given.fill | default(63) }} if {{ sees }} else {{ before.fill | default(63) }}  # of fresh memory
{% endif %}
{% set fill = "fill" if before else given.fill | default(63) %}
{% set ways = 'count, "%s", %s' % (given.place | default("end"), fill) %}
{% set indent = "" if before or alike or reference is none else "    " %}
{% if indent %}
    if {{ sees }}:
{% endif %}
    {{ indent }}return [infer_guarded(request, numbers, list(feed.values()), {{ ways }}) for feed in feeds]
{% endif %}
{% if not guards or not (alike or before or reference is none) %}
    for feed in feeds:
        infer(request, numbers, list(feed.values()), {{ kinds }})
        results.append([seen(request.get_output_tensor(place)) for place in range(len(model.graph.output))])
    return results
{% endif %}


def seen(output):
    """Return an output as numbers{{ "; 16-bit brain floats are widened, other foreign types stay bits" if exotic }}."""
{% if exotic %}
    name, words = from_tensor(output)
    return (words.astype(np.uint32) << 16).view(np.float32) if name == "bf16" else words
{%- else %}
    return from_tensor(output)[1]
{%- endif %}
'''
)

SCRIPT = ScriptLines(
    sources=(
        "miscompile.targets.external",
        "miscompile.targets.guards",
        "miscompile.targets.openvino.interface",
        "miscompile.targets.openvino.switch",
        "miscompile.targets.openvino.runner",
    ),
    imports=("import os, shutil, subprocess, tempfile",),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"openvino", ov.__version__',
    prelude=_PRELUDE,
)


_TORCH_REST = '''\
    request = compile_read(ov.Core(), read, "full").create_infer_request()
    given = [words_of(value) for value in inputs]
    infer(request, kept_places(len(inputs), read), [words for words, _ in given], [kind for _, kind in given])
    return [widened(*from_tensor(request.get_output_tensor(place))) for place in range(len(read.outputs))]


def widened(name, array):
    """Return an output; brain floats are widened."""
    return (array.astype(np.uint32) << 16).view(np.float32) if name == "bf16" else array
'''

_TORCH_SOURCES = (
    "miscompile.targets.torch.runner",
    "miscompile.targets.openvino.interface",
    "miscompile.targets.openvino.torch_runner",
    "miscompile.targets.guards",
    "miscompile.targets.openvino.runner",
)
_VERSIONS = '"torch", torch.__version__, "openvino", ov.__version__'

TORCH = FrontLines(
    sources=_TORCH_SOURCES,
    imports=(),
    run=f'''\
def converted(model, inputs):
    """Trace and convert the model, compile it; return its outputs."""
    example = tuple(value.clone() for value in inputs)  # tracing runs the model
    read = convert_traced(trace_module(model, example), model, example)
{_TORCH_REST}''',
    versions=_VERSIONS,
)

EXPORTED = FrontLines(
    sources=_TORCH_SOURCES,
    imports=(),
    run=f'''\
def converted(model, inputs):
    """Export and convert the model, compile it; return its outputs."""
    read = convert_exported(decode_exported(export_module(model, tuple(inputs))))
{_TORCH_REST}''',
    versions=_VERSIONS,
)


_KERAS_REST = '''\
    request = compile_read(ov.Core(), read, "full").create_infer_request()
    kinds = [KINDS.get(array.dtype.name, 0) for array in inputs]
    words = [array.view(f"u{array.itemsize}") if kind else array for array, kind in zip(inputs, kinds)]
    infer(request, places, words, kinds)
    return [widened(*from_tensor(request.get_output_tensor(place))) for place in range(len(read.outputs))]


KINDS = {"bfloat16": 16, "float8_e4m3fn": 17, "float8_e5m2": 19}  # numbers of onnx.TensorProto


def widened(name, array):
    """Return an output; brain floats are widened."""
    return (array.astype(np.uint32) << 16).view(np.float32) if name == "bf16" else array
'''

_KERAS_SOURCES = (
    "miscompile.targets.keras.runner",
    "miscompile.targets.openvino.interface",
    "miscompile.targets.openvino.keras_runner",
    "miscompile.targets.guards",
    "miscompile.targets.openvino.runner",
)

KERAS = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "openvino"', ""),
    imports=(
        "import openvino.opset16 as opset",
        "import keras",
        "from keras.src.backend.openvino.core import OPENVINO_DTYPES",
    ),
    run='''\
def converted(model, inputs):
    """Have the back end make a graph of the model, as `predict` does; compile and run it."""
    kinds = [OPENVINO_DTYPES[keras.backend.standardize_dtype(array.dtype)] for array in inputs]
    parameters = [opset.parameter(list(array.shape), kind) for array, kind in zip(inputs, kinds)]
    read = built_by_keras(model, parameters)
    places = range(len(parameters))
'''
    + _KERAS_REST,
    versions='"openvino", ov.__version__, "keras", keras.__version__',
    isolated=True,
    sources=_KERAS_SOURCES,
)

TENSORFLOW = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "tensorflow"', ""),
    imports=("import keras", "import tensorflow as tf"),
    run='''\
def converted(model, inputs):
    """Trace the model, convert its graph, compile and run it."""
    read = convert_graph(concrete_function(model, [(array.shape, array.dtype.name) for array in inputs]))
    places = named_places(len(inputs), read)
'''
    + _KERAS_REST,
    versions='"openvino", ov.__version__, "tensorflow", tf.__version__, "keras", keras.__version__',
    isolated=True,
    sources=_KERAS_SOURCES,
)
