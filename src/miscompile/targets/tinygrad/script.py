"""The lines that a reproducer for tinygrad consists of, beside what all scripts have in common.

Its rules are named in the script as they are here, so that a culprit can be looked up by whoever reads it.
"""

import textwrap

from miscompile.targets.about import ScriptLines
from miscompile.targets.placement import PLACEMENT
from miscompile.targets.tinygrad.about import CUDA, DEVICES
from miscompile.targets.tinygrad.environment import FIXED
from miscompile.targets.tinygrad.names import MATCHERS, NEEDS, RULES, STAGES


def _wrapped(words: tuple[str, ...]) -> str:
    lines = textwrap.wrap(" ".join(words), 106, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), "    ")


_RUN = (
    PLACEMENT
    + '''\
{% set devices = @DEVICES@ %}
{% set device = options.get("device", "clang") %}
{% set switched = reference is not none or faulty.disabled or culprits %}
DEVICES = {"off": "{{ devices[options.get("reference", device)] }}", "full": "{{ devices[device] }}"}
{% if switched %}
{% if reference is not none and reference.level == "off" %}
# Every rewrite rule and stage that tinygrad can do without: all of them are off at level "off".
OPTIONAL = """
@OPTIONAL@
""".split()
{% else %}
OPTIONAL = []
{% endif %}
# Where the rules live; a matcher owns what none before it has.
MATCHERS = """
@MATCHERS@
""".split()
COALESCING = codegen.memory_coalescing
# Rules that go with others, by which their way is cleared.
NEEDS = @NEEDS@
{% endif %}


def run(level, off={{ nothing }}):
{% if switched %}
    """Execute at `level` without the rules and stages `off`; return the outputs for each feed."""
{% else %}
    """Execute on the device of `level`; return the outputs for each feed."""
{% endif %}
{% if switched %}
{% if placed %}
    device = {{ where }}
    place, off = "@CUDA@" if device == "cuda" else DEVICES[level], off or ()
{% endif %}
    off = set(OPTIONAL if level == "off" else off)
    off |= {rule for rule, needed in NEEDS.items() if off.intersection(needed)}
    PatternMatcher.rewrite = rewriter({identity for identity, name in rules().items() if name in off})
    codegen.memory_coalescing = (lambda sink, _: sink) if "memory_coalescing" in off else COALESCING
    for cache in (codegen.to_program_cache, realize.runtime_cache, schedule.schedule_cache):
        cache.clear()
    no_opts, no_planner = int("hand_coded_optimizations" in off), int("memory_plan_rewrite" in off)
    with Context(DEV={{ "place" if placed else "DEVICES[level]" }}, NOOPT=no_opts, NO_MEMORY_PLANNER=no_planner):
        return [outputs(feed) for feed in feeds]
{% else %}
    # Every build shows this, so that nothing has to be switched off.
    with Context(DEV={{ '"@CUDA@"' if placed else "DEVICES[level]" }}):
        return [outputs(feed) for feed in feeds]
{% endif %}


def outputs(feed):
    """Run the model on one feed, with a runner of its own: a runner remembers inputs that it made constants of."""
    runner = OnnxRunner(Tensor(model.SerializeToString(), device="PYTHON"))
    found = runner({name: tensor_of(name, array) for name, array in feed.items()})
    found = [found[value.name] for value in model.graph.output]
    Tensor.realize(*[value for value in found if value is not None])
    return [None if value is None else array_of(value) for value in found]


def tensor_of(name, array):
    """Wrap an input."""
{% if types %}
    if name in types:  # a brain float, as the words that it consists of
        words = Tensor(array.tobytes(), dtype=dtypes.bfloat16, device="PYTHON")
        return words.reshape(array.shape).to(Device.DEFAULT)
{% endif %}
    return Tensor(array)


def array_of(value):
    """Return an output as numbers."""
{% if exotic %}
    if value.dtype == dtypes.bfloat16:
        return (value.bitcast(dtypes.uint16).numpy().astype(np.uint32) << 16).view(np.float32)
{% endif %}
    return value.numpy()
{% if switched %}


def rewriter(dropped):
    """Return tinygrad's `PatternMatcher.rewrite` without the rules `dropped`."""

    def rewrite(self, uop, ctx=None):
        operators = {operand.op for operand in uop.src}
        for pattern, match, needed in self.pdict.get(uop.op, []):
            if id(pattern) not in dropped and needed.issubset(operators):
                result = match(uop, ctx)
                if result is not None and result is not uop:
                    return result
        return None

    return rewrite


def rules():
    """Return the names of the rules, as matcher:pattern, by the identity of their patterns."""
    names, counts = {}, {}
    for path in MATCHERS:
        module, _, variable = path.rpartition(".")
        for pattern, _ in getattr(import_module(module), variable).patterns:
            if id(pattern) not in names:
                name = f"{variable}:{spell(pattern)}"
                counts[name] = counts.get(name, 0) + 1
                names[id(pattern)] = name if counts[name] == 1 else f"{name}#{counts[name]}"
    return names


def spell(pattern):
    """Return a pattern as text: operators, then operands in brackets, parted by dots."""
    if pattern.op == (Ops.CONST,):
        return str(pattern.arg) if pattern.arg is not None else (pattern.name or "const")
    if pattern.is_any:
        return spell(pattern.src[0][0])
    head = pattern.name or "_"
    if pattern.op is not None:
        groups = [name for name, ops in vars(GroupOp).items() if len(pattern.op) > 1 and ops == set(pattern.op)]
        members = sorted(op.name for op in pattern.op)
        head = groups[-1] if groups else "_or_".join(members) if len(members) < 4 else f"{len(members)}ops"
    if pattern.src is None:
        return head
    operands = [pattern._in_src] if isinstance(pattern._in_src, UPat) else pattern._in_src
    return f"{head}({'.'.join(map(spell, operands))})"
{% endif %}
'''
)
for _mark, _text in (
    ("@CUDA@", CUDA),
    ("@DEVICES@", repr(DEVICES)),
    ("@OPTIONAL@", _wrapped(STAGES + RULES)),
    ("@MATCHERS@", _wrapped(MATCHERS)),
    ("@NEEDS@", repr(NEEDS)),
):
    _RUN = _RUN.replace(_mark, _text)

_VARIABLES = ("DEV", "CACHELEVEL", "CCACHE", "NUM_CPU_THREADS", "PARALLEL")

SCRIPT = ScriptLines(
    setup=(
        "import os",
        "",
        "os.environ.update(" + ", ".join(f'{name}="{FIXED[name]}"' for name in _VARIABLES) + ")",
        "",
    ),
    imports=(
        "from importlib import import_module, metadata",
        "from tinygrad import Device, Tensor, codegen, dtypes, schedule",
        "from tinygrad.engine import realize",
        "from tinygrad.helpers import Context",
        "from tinygrad.nn.onnx import OnnxRunner",
        "from tinygrad.uop.ops import GroupOp, Ops, PatternMatcher, UPat",
    ),
    levels={level: f'"{level}"' for level in ("off", "full")},
    run=_RUN,
    versions='"tinygrad", metadata.version("tinygrad")',
)
