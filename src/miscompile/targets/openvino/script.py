"""The parts of standalone scripts for OpenVINO and its front ends, besides the runner and the parts common to all."""

import textwrap

from miscompile.targets.about import FrontLines, ScriptLines
from miscompile.targets.openvino.about import ABOUT, FRAMES, PASSES
from miscompile.targets.presentations import PLACEMENT, PRESENTED

_NAMES = "\n".join(f"    {line}" for line in textwrap.wrap(" ".join((*PASSES, *FRAMES)), 112))

_SWITCHED = """\
{% set presented = presented if presented in ("reload", "external") else "" %}
{% set nothing = "None" if presented and not alike else nothing %}
{% set everything = faulty.level == "off" or (reference is not none and reference.level == "off") %}
{% set switched = everything or culprits or faulty.disabled or (reference is not none and reference.disabled) %}
"""

_PRELUDE = (
    PLACEMENT
    + PRESENTED
    + _SWITCHED
    + '''\
{% if switched %}
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
{% if switched %}
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
    for feed in feeds:
        infer(request, numbers, list(feed.values()), {{ kinds }})
        results.append([seen(request.get_output_tensor(place)) for place in range(len(model.graph.output))])
    return results


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
        "miscompile.targets.openvino.switch",
        "miscompile.targets.openvino.runner",
    ),
    imports=("import tempfile", "import openvino as ov"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"openvino", ov.__version__',
    prelude=_PRELUDE,
)


_REST = '''\
    request = compile_read(ov.Core(), made, "full").create_infer_request()
    given = [words_of(value) for value in inputs]
    numbers = [place if place < len(made.inputs) else None for place in range(len(inputs))]
    infer(request, numbers, [words for words, _ in given], [kind for _, kind in given])
    return [widened(*from_tensor(request.get_output_tensor(place))) for place in range(len(made.outputs))]


KINDS = {torch.bfloat16: 16, torch.float8_e4m3fn: 17, torch.float8_e5m2: 19}  # numbers of onnx.TensorProto


def words_of(value):
    """Return a tensor as an array, and the number of its type where numpy lacks that; then the array holds words."""
    value = value.contiguous()
    if value.dtype not in KINDS:
        return value.numpy(), 0
    return value.view(torch.int16 if value.element_size() == 2 else torch.uint8).numpy(), KINDS[value.dtype]


def widened(name, array):
    """Return an output; brain floats are widened."""
    return (array.astype(np.uint32) << 16).view(np.float32) if name == "bf16" else array
'''

_SOURCES = ("miscompile.targets.openvino.runner",)
_VERSIONS = '"torch", torch.__version__, "openvino", ov.__version__'

TORCH = FrontLines(
    sources=_SOURCES,
    imports=("import openvino as ov",),
    run=f'''\
def converted(model, inputs):
    """Trace and convert the model, compile it; return its outputs."""
    made = ov.convert_model(model, example_input=tuple(value.clone() for value in inputs))  # tracing runs it
{_REST}''',
    versions=_VERSIONS,
)

EXPORTED = FrontLines(
    sources=_SOURCES,
    imports=("import openvino as ov",),
    run=f'''\
def converted(model, inputs):
    """Export and convert the model, compile it; return its outputs."""
    made = ov.convert_model(torch.export.export(model, tuple(inputs)))
{_REST}''',
    versions=_VERSIONS,
)


_WIDENED = '''\
def widened(value, port):
    """Return a result as an array; brain floats, which come as bits, are widened."""
    if port.element_type == ov.Type.bf16:
        return (value.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.array(value)
'''

KERAS = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "openvino"', ""),
    imports=(
        "import openvino as ov",
        "import openvino.opset16 as opset",
        "import keras",
        "from keras.src.backend.openvino.core import OPENVINO_DTYPES, OpenVINOKerasTensor, get_ov_output",
    ),
    run='''\
def converted(model, inputs):
    """Have the back end make a graph of the model, as `predict` does; compile and run it."""
    kinds = [OPENVINO_DTYPES[keras.backend.standardize_dtype(array.dtype)] for array in inputs]
    parameters = [opset.parameter(list(array.shape), kind) for array, kind in zip(inputs, kinds)]
    outputs = model([OpenVINOKerasTensor(parameter.output(0)) for parameter in parameters], training=False)
    results = [opset.result(get_ov_output(output)) for output in keras.tree.flatten(outputs)]
    compiled = compile_read(ov.Core(), ov.Model(results, parameters), "full")
    return [widened(value, port) for port, value in zip(compiled.outputs, compiled(inputs).to_tuple())]


'''
    + _WIDENED,
    versions='"openvino", ov.__version__, "keras", keras.__version__',
    isolated=True,
    sources=("miscompile.targets.openvino.runner",),
)

TENSORFLOW = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "tensorflow"', ""),
    imports=("import keras", "import openvino as ov", "import tensorflow as tf"),
    run='''\
def converted(model, inputs):
    """Trace the model, convert its graph, compile and run it."""
    def called(*values):
        outputs = keras.tree.flatten(model(list(values), training=False))
        return {f"y{place:03d}": output for place, output in enumerate(outputs)}

    specs = [tf.TensorSpec(array.shape, array.dtype, f"x{place}") for place, array in enumerate(inputs)]
    graph = tf.function(called, autograph=False).get_concrete_function(*specs)
    made = ov.convert_model(graph)
    compiled = compile_read(ov.Core(), made, "full")
    names = [name for port in made.inputs for name in port.get_names()]
    values = compiled({name: inputs[int(name[1:])] for name in names})
    return [widened(value, port) for port, value in zip(compiled.outputs, values.to_tuple())]


'''
    + _WIDENED,
    versions='"openvino", ov.__version__, "tensorflow", tf.__version__, "keras", keras.__version__',
    isolated=True,
    sources=("miscompile.targets.openvino.runner",),
)
