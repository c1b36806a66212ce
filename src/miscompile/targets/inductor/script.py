"""The parts of standalone scripts for Inductor and its front end, besides the runners."""

from miscompile.targets.about import FrontLines, ScriptLines
from miscompile.targets.inductor.about import ABOUT, EARLY_PATTERNS, GRAPH_PASSES, LATE_PATTERNS
from miscompile.targets.presentations import PLACEMENT, PRESENTED

_PRESENTED = """\
{% set guards = presented == "guarded" and faulty.device == "cpu" %}
{% set strided = presented == "strided" %}
{% set derived = presented == "derivative" %}
{% set mapped = presented == "batched" %}
{% set presented = presented if presented in ("decomposed", "related", "strided", "batched") else "" %}
{% set nothing = "None" if (presented or guards) and not alike else nothing %}
{% set before = dict(reference.transform.options) if guards and reference is not none and reference.transform else {} %}
"""

_SWITCHED = f"""\
{{% set builds = [faulty, reference] if reference is not none else [faulty] %}}
{{% set off = builds | map(attribute="disabled") | map("list") | sum(start=culprits | list) %}}
{{% set graph_passes = off | select("in", {sorted(GRAPH_PASSES)!r}) | list %}}
{{% set patterns = off | select("in", {sorted((*EARLY_PATTERNS, *LATE_PATTERNS))!r}) | list %}}
{{% set vectors = "vectorization" in off or "nopasses" in builds | map(attribute="level") %}}
"""

_PRELUDE = (
    PLACEMENT
    + _SWITCHED
    + """\
configure()
{% if graph_passes %}
switch_graph_passes()
{% endif %}
{% if patterns %}
with cuda_hidden():
    register_patterns()
{% if placed %}
register_patterns(torch.device("cuda", 0))
{% endif %}
switch_patterns()
{% endif %}
{% if vectors %}
switch_vectors()
{% endif %}
"""
)

_LINES = '''\
{% set made = "decomposing" if presented == "decomposed" else "relating" %}
{% if placed %}
def run(level, off={{ nothing }}):
    """Do what `run_here` does, on the device of this call, with the constants of `program` there as well."""
    device = {{ where }}
    make_exact()
    for name, value in list(globals().items()):
        if isinstance(value, torch.Tensor):
            globals()[name] = value.to(device)
    with on_device(device):
        return run_here(level, off or (), device{{ ", " ~ sees if presented }})


def run_here(level, off, device{{ ", changed" if presented }}):
    """Compile `program` at `level` without the passes `off`; return the outputs for each feed."""
{% else %}
def run(level, off={{ nothing }}):
    """Compile `program` at `level` without the passes `off`; return the outputs for each feed."""
{% if presented or (guards and not alike) %}
    changed, off = {{ sees }}, off or ()
{% endif %}
{% endif %}
    torch._dynamo.reset()
    settings = settings_for(level, off{{ ", device" if placed }})
{% if graph_passes or patterns or vectors %}
    switch_off(level, off)
{% endif %}
{% if presented and not strided and not mapped %}
    if changed:
        backend = {{ made }}(level, {{ given.seed }}, {{ given.share }})
    else:
        backend = backend_for(level)
    function = program if level == "off" and not changed else compile_program(program, backend)
{% elif mapped %}
    function = batched(program) if changed else program
    function = function if level == "off" else compile_program(function, backend_for(level))
{% elif not derived %}
    function = program if level == "off" else compile_program(program, backend_for(level))
{% endif %}
    with torch.no_grad(), torch._inductor.config.patch(settings):
{% if guards %}
{% set fill = given.fill | default(63) %}
{% set fill = "%s if changed else %s" % (fill, before.fill | default(63)) if before and not alike else fill %}
{% set way = '%s, "%s", %s' % ("types" if types else "{}", given.place | default("end"), fill) %}
{% if reference is none or before or alike %}
        results = [run_guarded(function, feed, {{ way }}) for feed in feeds]
{% else %}
        if changed:
            results = [run_guarded(function, feed, {{ way }}) for feed in feeds]
        else:
            results = [function(*arrays(feed)) for feed in feeds]
{% endif %}
{% elif derived %}
        values = [arrays(feed{{ ", device" if placed }}) for feed in feeds]
        function = derivative(level, values[0])
        results = [function(*one) for one in values]
{% elif strided %}
        values = [arrays(feed{{ ", device" if placed }}) for feed in feeds]
        results = [function(*(with_strides(one, {{ given.seed }}) if changed else one)) for one in values]
{% else %}
        results = [function(*arrays(feed{{ ", device" if placed }})) for feed in feeds]
{% endif %}
    return [[seen(*from_torch(value)) for value in result] for result in results]


{% if derived %}
def derivative(level, values):
    """Return a function with the results of `program` and, after them, its derivatives."""
    results = program(*values)
    inputs, outputs = moving_places(values), moving_places(results)
    starts = directions_like(values, inputs, {{ given.seed }})
    ends = directions_like(results, outputs, {{ given.seed }})

    def compiled(function):
        return function if level == "off" else compile_program(function, backend_for(level))

    mode = "{{ given.mode | default("reverse") }}"
    return with_derivatives(program, compiled, mode, level == "off", inputs, starts, outputs, ends)


{% endif %}
def arrays(feed{{ ", device" if placed }}):
    """Return the tensors of a feed."""
    found = [tensor(array, {{ 'types.get(name, "")' if types else '""' }}) for name, array in feed.items()]
    return {{ "[value.to(device) for value in found]" if placed else "found" }}


def seen(words, is_bfloat16):
    """Return an output as an array; brain floats are widened."""
    return (words.astype(np.uint32) << 16).view(np.float32) if is_bfloat16 else words
'''

_RUN = PLACEMENT + PRESENTED + _PRESENTED + _SWITCHED + _LINES

SOURCES = tuple(
    f"miscompile.targets.{name}"
    for name in (
        "directions",
        "guards",
        "inductor.batching",
        "inductor.derivatives",
        "inductor.settings",
        "inductor.decompositions",
        "inductor.relations",
        "inductor.related",
        "inductor.strides",
        "inductor.switch_runner",
        "torch.runner",
        "inductor.runner",
    )
)
"""The modules whose functions scripts may contain."""

SCRIPT = ScriptLines(
    sources=SOURCES,
    setup=("import os", "", 'os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"  # on a hit no pass would run', ""),
    imports=("import torch", "import torch._inductor.config"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"torch", torch.__version__',
    prelude=_PRELUDE,
    program="miscompile.targets.lowering.torch_program:program",
    calls=True,
)


TORCH = FrontLines(
    sources=SOURCES,
    imports=("import torch._inductor.config",),
    run='''\
def converted(model, inputs):
    """Compile the model as a whole; return its outputs."""
    configure()
    torch._dynamo.reset()
    compiled = compile_program(model, backend_for("full"))
    with torch.no_grad(), torch._inductor.config.patch(settings_for("full", ())):
        return flat(compiled(*[value.clone() for value in inputs]))
''',
    versions='"torch", torch.__version__',
)
