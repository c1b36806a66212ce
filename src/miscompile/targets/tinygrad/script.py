"""The parts of standalone scripts for tinygrad, besides the runner and the parts common to all scripts.

The script contains the names of rules as in this package, so that a reader can look up a faulty rule.
"""

from miscompile.targets.about import ScriptLines
from miscompile.targets.presentations import PLACEMENT
from miscompile.targets.tinygrad.about import CUDA, DEVICES
from miscompile.targets.tinygrad.environment import FIXED

_SWITCHED = """\
{% set switched = reference is not none or faulty.disabled or culprits %}
"""

_PRELUDE = (
    _SWITCHED
    + """\
{% if switched %}
# Every rewrite rule and stage that tinygrad can do without: all of them are off at level "off".
OPTIONAL = frozenset({*STAGES, *RULES})
SWITCH = Switch({id(pattern): name for name, pattern in rules() if name in OPTIONAL})
WRAPPED = Stages()
{% endif %}
"""
)

_RUN = (
    PLACEMENT
    + _SWITCHED
    + '''\
{% set devices = @DEVICES@ %}
{% set device = options.get("device", "clang") %}
DEVICES = {"off": "{{ devices[options.get("reference", device)] }}", "full": "{{ devices[device] }}"}


def run(level, off={{ nothing }}):
{% if switched %}
    """Execute at `level` without the rules and stages `off`; return the outputs for each feed."""
{% if placed %}
    device = {{ where }}
{% endif %}
    place = {{ '"@CUDA@" if device == "cuda" else DEVICES[level]' if placed else "DEVICES[level]" }}
    off = widen(OPTIONAL if level == "off" else frozenset(off{{ " or ()" if nothing == "None" }}))
    with Context(**switch_off(SWITCH, WRAPPED, off, place)):
        return [outputs_of(feed) for feed in feeds]
{% else %}
    """Execute on the device of `level`; return the outputs for each feed."""
    # Every build shows this, so that nothing has to be switched off.
    with Context(**on_device({{ '"@CUDA@"' if placed else "DEVICES[level]" }})):
        return [outputs_of(feed) for feed in feeds]
{% endif %}


def outputs_of(feed):
    """Run the model on one feed."""
    given = {name: to_tensor(array, {{ "name in types" if types else "False" }}) for name, array in feed.items()}
    names = [output.name for output in model.graph.output]
    found = [from_output(output) for output in call(read_model(model.SerializeToString()), names, given)]
    return [None if one is None else seen(*one) for one in found]


def seen(words, is_bfloat16):
    """Return an output as numbers; brain floats are widened."""
    return (words.astype(np.uint32) << 16).view(np.float32) if is_bfloat16 else words
'''
)
for _mark, _text in (("@CUDA@", CUDA), ("@DEVICES@", repr(DEVICES))):
    _RUN = _RUN.replace(_mark, _text)

_VARIABLES = ("DEV", "CACHELEVEL", "CCACHE", "NUM_CPU_THREADS", "CPU_COUNT", "PARALLEL")

SCRIPT = ScriptLines(
    sources=tuple(f"miscompile.targets.tinygrad.{name}" for name in ("names", "releases", "switches", "runner")),
    setup=(
        "import os",
        "",
        "os.environ.update(" + ", ".join(f'{name}="{FIXED[name]}"' for name in _VARIABLES) + ")",
        "",
    ),
    imports=("from importlib import metadata", "from tinygrad.helpers import Context"),
    levels={level: f'"{level}"' for level in ("off", "full")},
    run=_RUN,
    versions='"tinygrad", metadata.version("tinygrad")',
    prelude=_PRELUDE,
)
