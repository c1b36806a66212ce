"""The lines that a reproducer for XLA consists of, beside what all scripts have in common."""

import textwrap

from miscompile.targets.about import ScriptLines
from miscompile.targets.placement import PLACEMENT
from miscompile.targets.xla.about import LEVELS
from miscompile.targets.xla.environment import CUDA_OPTIONS, FLAGS, PLATFORM

_PRELUDE = (
    PLACEMENT
    + '''\
jax.config.update("jax_enable_x64", True)
{% if placed %}
jax.config.update("jax_platforms", "cpu,{{ gpu }}")
{% endif %}


def tensor(array, dtype):
    """Return an array for JAX; brain floats come as 16-bit words."""
    return jnp.asarray(np.asarray(array).view(jnp.bfloat16) if dtype == "bfloat16" else array)
'''
)

_RUN = (
    PLACEMENT
    + '''\
{% if placed %}
def run(level, off={{ nothing }}):
    """Do what `run_here` does, on the device of this call."""
    device = {{ where }}
    precision = "highest" if device == "cuda" else None
    with jax.default_device(jax.devices(device)[0]), jax.default_matmul_precision(precision):
        return run_here(level, off or (), @CUDA_OPTIONS@ if device == "cuda" else {})


def run_here(level, off, further):
    """Compile `program` at `level` without the passes `off`; return the outputs for each feed."""
{% else %}
def run(level, off=()):
    """Compile `program` at `level` without the passes `off`; return the outputs for each feed."""
{% endif %}
{% set eager = "off" in [faulty.level, reference.level if reference is not none else ""] %}
{% if eager %}
    if level == "off":  # every primitive alone, as the flags above say
        with jax.disable_jit():
            return [[to_numpy(value) for value in program(*inputs(feed))] for feed in feeds]
{% endif %}
    options = {
        "xla_backend_optimization_level": level,
        "xla_disable_hlo_passes": ",".join(off),
{% if placed %}
        **further,
{% endif %}
    }
    compiled = jax.jit(lambda *values: program(*values)).lower(*inputs(feeds[0])).compile(options)
    return [[to_numpy(value) for value in compiled(*inputs(feed))] for feed in feeds]


def inputs(feed):
    """Return the arrays of a feed."""
{% if types %}
    return [tensor(array, types.get(name, str(array.dtype))) for name, array in feed.items()]
{% else %}
    return [jnp.asarray(array) for array in feed.values()]
{% endif %}


def to_numpy(value):
    """Return an output as an array{{ "; brain floats are widened" if exotic }}."""
{% if exotic %}
    value = value.astype(jnp.float32) if value.dtype == jnp.bfloat16 else value
{% endif %}
    return np.asarray(value)
'''
).replace("@CUDA_OPTIONS@", repr(CUDA_OPTIONS).replace("'", '"'))


def _flags() -> str:
    """Return the flags as string literals on lines of their own, the long list of passes on several."""
    head, *names = FLAGS[-1].replace("=", "= ", 1).replace(",", ", ").split(" ")
    wrapped = textwrap.wrap(" ".join(names), 100, break_long_words=False, break_on_hyphens=False)
    pieces = [*(f"{flag} " for flag in FLAGS[:-1]), head, *(line.replace(" ", "") for line in wrapped)]
    return "".join(f'    "{piece}"\n' for piece in pieces)


SCRIPT = ScriptLines(
    setup=(
        "import os",
        "",
        "# For level off, which runs one primitive at a time; compilation as a whole overrides levels and passes.",
        f'os.environ["JAX_PLATFORMS"] = "{PLATFORM}"',
        f'os.environ["XLA_FLAGS"] = (\n{_flags()})',
        "",
    ),
    imports=("import jax", "import jax.numpy as jnp", "from jax import lax"),
    levels={name: repr("off") if number is None else str(number) for name, number in LEVELS.items()},
    run=_RUN,
    versions='"jax", jax.__version__',
    prelude=_PRELUDE,
    program="miscompile.targets.xla.program:program",
)
