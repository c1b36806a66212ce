"""The parts of standalone scripts for XLA, besides the runner and the parts common to all scripts."""

import textwrap

from miscompile.targets.about import ScriptLines
from miscompile.targets.placement import PLACEMENT
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
    + '''\
{% set builds = [faulty, reference] if reference is not none else [faulty] %}
{% set plain = builds | selectattr("level", "equalto", "off") | map(attribute="device") | unique | list %}
{% set given = "arrays(feeds[0])" %}
{% if not fixed or plain != ["cpu"] and "cpu" not in plain %}
{% set reference_build = "eager(program)" %}
{% elif plain == ["cpu"] %}
{% set reference_build = "isolated(program, %s)" % given %}
{% else %}
{% set reference_build = "eager(program) if further else isolated(program, %s)" % given %}
{% endif %}
{% if placed %}
def run(level, off={{ nothing }}):
    """Do what `run_here` does, on the device of this call."""
    device = {{ where }}
    with on_device(device):
        return run_here(level, off or (), CUDA_OPTIONS if device == "cuda" else {})


def run_here(level, off, further):
{% else %}
def run(level, off=()):
{% endif %}
    """Compile `program` at `level` without the passes `off`; return the outputs for each feed."""
{% if plain %}
    if level == "off":  # every primitive alone, by the flags above
        called = {{ reference_build }}
    else:
        called = compile_function(program, {{ given }}, level, off, {{ "further" if placed else "{}" }})
{% else %}
    called = compile_function(program, {{ given }}, level, off, {{ "further" if placed else "{}" }})
{% endif %}
    return [[seen(value) for value in called(*arrays(feed))] for feed in feeds]


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
    sources=("miscompile.targets.xla.isolated_build", "miscompile.targets.xla.runner"),
    imports=("import jax", "import jax.numpy as jnp", "from jax import lax"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"jax", jax.__version__',
    prelude=_PRELUDE,
    program="miscompile.targets.xla.program:program",
)
