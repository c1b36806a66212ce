"""The parts of standalone scripts for XLA and Keras on JAX, besides the runners."""

import textwrap

from miscompile.targets.about import FrontLines, ScriptLines
from miscompile.targets.presentations import PLACEMENT, PRESENTED
from miscompile.targets.xla.about import ABOUT
from miscompile.targets.xla.environment import FLAGS, PLATFORM

_PRELUDE = (
    PLACEMENT
    + """\
configure()
{% if placed %}
jax.config.update("jax_platforms", "cpu,{{ gpu }}")
{% endif %}
"""
)

_RUN = (
    PLACEMENT
    + PRESENTED
    + '''\
{% set exported = presented == "reload" and not placed %}
{% set derived = presented == "derivative" %}
{% set mapped = presented == "batched" %}
{% set mapping = "(batched(program) if %s else program)" % sees if not alike else "batched(program)" %}
{% set whole = "derivative(level)" if derived else mapping if mapped else "program" %}
{% set nothing = "None" if (exported or mapped) and not alike else nothing %}
{% set builds = [faulty, reference] if reference is not none else [faulty] %}
{% set plain = builds | selectattr("level", "equalto", "off") | map(attribute="device") | unique | list %}
{% set given_options = dict({"mode": "reverse"}, **given) %}
{% set given = "arrays(feeds[0])" %}
{% if not fixed or plain != ["cpu"] and "cpu" not in plain %}
{% set reference_build = "eager(%s)" % whole %}
{% elif plain == ["cpu"] %}
{% set through = ", reloaded if %s else None" % sees if exported else "" %}
{% set reference_build = "isolated(%s, %s%s)" % (whole, given, through) %}
{% else %}
{% set reference_build = "eager(%s) if further else isolated(%s, %s)" % (whole, whole, given) %}
{% endif %}
{% set compiled = "reloaded(program, %s) if %s else program" % (given, sees) if exported else whole %}
{% set switched = "off or ()" if (exported or mapped) and nothing == "None" else "off" %}
{% set further = "further" if placed else "{}" %}
{% set compilation = "compile_function(%s, %s, level, %s, %s)" % (compiled, given, switched, further) %}
{% if placed %}
def run(level, off={{ nothing }}):
    """Do what `run_here` does, on the device of this call."""
    device = {{ where }}
    with on_device(device):
        return run_here(level, off or (), CUDA_OPTIONS if device == "cuda" else {})


def run_here(level, off, further):
{% else %}
def run(level, off={{ nothing if exported or mapped else "()" }}):
{% endif %}
    """Compile `program` at `level` without the passes `off`; return the outputs for each feed."""
{% if plain %}
    if level == "off":  # every primitive alone, by the flags above
        called = {{ reference_build }}
    else:
        called = {{ compilation }}
{% else %}
    called = {{ compilation }}
{% endif %}
    return [[seen(value) for value in called(*arrays(feed))] for feed in feeds]


{% if derived %}
def derivative(level):
    """Return a function with the results of `program` and, after them, its derivatives."""
    values = arrays(feeds[0])
    results = jax.eval_shape(lambda *given: program(*given), *values)
    inputs, outputs = moving_places(values), moving_places(results)
    starts = directions_like(values, inputs, {{ given_options.seed }})
    ends = directions_like(results, outputs, {{ given_options.seed }})
    return with_derivatives(program, "{{ given_options.mode }}", level == "off", inputs, starts, outputs, ends)


{% endif %}
def arrays(feed):
    """Return the arrays of a feed."""
    return [tensor(array, {{ 'types.get(name, "")' if types else '""' }}) for name, array in feed.items()]


def seen(value):
    """Return an output as an array{{ "; brain floats are widened, other foreign types are bits" if exotic }}."""
{% if exotic %}
    value = value.astype(jnp.float32) if value.dtype == jnp.bfloat16 else value
    return np.asarray(value).view(np.uint8) if value.dtype.name.startswith("float8") else np.asarray(value)
{%- else %}
    return np.asarray(value)
{%- endif %}
'''
)


def _flags() -> str:
    """Return the flags as string literals on separate lines, the long list of passes on several."""
    head, *names = FLAGS[-1].replace("=", "= ", 1).replace(",", ", ").split(" ")
    wrapped = textwrap.wrap(" ".join(names), 100, break_long_words=False, break_on_hyphens=False)
    pieces = [*(f"{flag} " for flag in FLAGS[:-1]), head, *(line.replace(" ", "") for line in wrapped)]
    return "".join(f'    "{piece}"\n' for piece in pieces)


SETUP = (
    "import os",
    "",
    "# For level off, which keeps primitives apart; the other levels override what these say of levels and passes.",
    f'os.environ["JAX_PLATFORMS"] = "{PLATFORM}"',
    f'os.environ["XLA_FLAGS"] = (\n{_flags()})',
    "",
)
"""The lines that set the variables of the worker's process."""

SCRIPT = ScriptLines(
    setup=SETUP,
    sources=(
        "miscompile.targets.directions",
        "miscompile.targets.xla.batching",
        "miscompile.targets.xla.derivatives",
        "miscompile.targets.xla.isolated_build",
        "miscompile.targets.xla.runner",
    ),
    imports=("import jax", "import jax.numpy as jnp", "from jax import lax"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"jax", jax.__version__',
    prelude=_PRELUDE,
    program="miscompile.targets.xla.program:program",
    calls=True,
)


KERAS = FrontLines(
    setup=(*SETUP[:-1], 'os.environ["KERAS_BACKEND"] = "jax"', ""),
    sources=("miscompile.targets.keras.runner", "miscompile.targets.xla.keras_runner", "miscompile.targets.xla.runner"),
    imports=("import jax", "import keras"),
    run='''\
def converted(model, inputs):
    """Compile the model as a whole; return its outputs."""
    given = [tensor(array, "") for array in inputs]
    compiled = compile_function(function_of(model), given, "full", (), {})
    return flat(compiled(*given))
''',
    versions='"jax", jax.__version__, "keras", keras.__version__',
)
