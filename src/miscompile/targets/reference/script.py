"""The parts of standalone scripts for the reference implementation, besides the runner."""

from miscompile.targets.about import ScriptLines

_RUN = '''\
def run(level, off=()):
    """Interpret the model; return the outputs for each feed."""
    evaluator = read_model(model.SerializeToString())
    return [[seen(value) for value in evaluate(evaluator, arrays(feed))] for feed in feeds]


def arrays(feed):
    """Return the arrays of a feed by name{{ ", with the element types that numpy lacks" if types }}."""
{% if types %}
    foreign = {name: helper.tensor_dtype_to_np_dtype(kind) for name, kind in types.items()}
    return {name: array.view(foreign.get(name, array.dtype)) for name, array in feed.items()}
{% else %}
    return feed
{% endif %}


def seen(value):
    """Return an output as an array{{ "; brain floats are widened, other foreign types are bits" if exotic }}."""
{% if exotic %}
    if value is None or value.dtype.name in np.sctypeDict:
        return value
    return value.astype(np.float32) if value.dtype.name == "bfloat16" else value.view(np.uint8)
{%- else %}
    return value
{%- endif %}
'''

SCRIPT = ScriptLines(
    sources=("miscompile.targets.reference.runner",),
    levels={"off": '"off"', "full": '"full"'},
    run=_RUN,
    versions='"onnx\'s reference implementation"',
)
