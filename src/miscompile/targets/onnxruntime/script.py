"""The parts of standalone scripts for ONNX Runtime, besides the runner and the parts common to all scripts."""

from miscompile.targets.about import ScriptLines
from miscompile.targets.onnxruntime.about import ABOUT
from miscompile.targets.placement import PLACEMENT
from miscompile.targets.presentations import PRESENTED

_RUN = (
    PLACEMENT
    + PRESENTED
    + '''\
{% set presented = presented if presented == "external" or (presented == "reload" and not placed) else "" %}
{% set nothing = "None" if presented and not alike else nothing %}
{% set without = "off or ()" if nothing == "None" else "off" %}
{% set begin = "start_on(device, " if placed else "start(" %}
def run(level, off={{ nothing }}):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
{% if placed %}
    device = {{ where }}
{% endif %}
    payload, options = model.SerializeToString(), session_options(level, threads={{ faulty.threads }})
{% if presented %}
    if {{ sees }}:
        with tempfile.TemporaryDirectory() as folder:
{% if presented == "external" %}
            # The file of the model, and beside it one with its weights.
            path = f"{folder}/model.onnx"
            store(onnx.load_model_from_string(payload), path, {{ given.seed }}, shapes_too=False)
            session = {{ begin }}path, options, {{ without }})
{% else %}
            session = start_reloaded(payload, options, {{ without }}, folder, "{{ given.format }}")
{% endif %}
    else:
        session = {{ begin }}payload, options, {{ without }})
{% else %}
    session = {{ begin }}payload, options, {{ without }})
{% endif %}
{% if placed %}
    assert PROVIDERS[device] in session.get_providers(), "the provider did not load"
{% endif %}
    names = [output.name for output in model.graph.output]
{% if exotic %}
    results = [run_words(session, names, feed, {{ "types" if types else "{}" }}) for feed in feeds]
    return [[None if value is None else seen(*value) for value in result] for result in results]


def seen(kind, words):
    """Return an output as numbers; 16-bit brain floats are widened, other foreign types stay bits."""
    return (words.astype(np.uint32) << 16).view(np.float32) if kind == TensorProto.BFLOAT16 else words
{%- else %}
    return [run_arrays(session, names, feed) for feed in feeds]
{%- endif %}
'''
)

SCRIPT = ScriptLines(
    sources=("miscompile.targets.external", "miscompile.targets.onnxruntime.runner"),
    imports=("import tempfile",),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"onnxruntime", ort.__version__',
)
