"""The parts of standalone scripts for Inductor, besides the runner and the parts common to all scripts.

The script switches FX passes and patterns off with less code than the worker's hooks, because these also observe
passes.
"""

from miscompile.targets.about import FrontLines, ScriptLines
from miscompile.targets.inductor.about import ABOUT
from miscompile.targets.inductor.settings import SETTINGS
from miscompile.targets.presentations import PLACEMENT, PRESENTED

_PRESENTED = """\
{% set presented = presented if presented in ("decomposed", "related") else "" %}
{% set nothing = "None" if presented and not alike else nothing %}
"""

_PRELUDE = (
    PRESENTED
    + """\
{% if presented == "decomposed" %}
os.environ.pop("CI", None)  # under which no kernel is called for an operator that could be decomposed
{% endif %}
"""
)

_LINES = f"""\
{{% set off = (faulty.disabled | sort | list) + (culprits | list) %}}
{{% set hooked = off | reject("in", {sorted((*SETTINGS, "vectorization"))!r}) | list %}}
{{% set levels_used = [faulty.level] + ([reference.level] if reference is not none else []) %}}
{{% set scalar = "vectorization" in off or "nopasses" in levels_used %}}
{{% set made = "decomposing" if presented == "decomposed" else "relating" %}}
{{% if placed %}}
def run(level, off={{{{ nothing }}}}):
    \"\"\"Do what `run_here` does, on the device of this call, with the constants of `program` there as well.\"\"\"
    device = {{{{ where }}}}
    make_exact()
    for name, value in list(globals().items()):
        if isinstance(value, torch.Tensor):
            globals()[name] = value.to(device)
    with on_device(device):
        return run_here(level, off or (), device{{{{ ", " ~ sees if presented }}}})


def run_here(level, off, device{{{{ ", changed" if presented }}}}):
    \"\"\"Compile `program` at `level` without the passes `off`; return the outputs for each feed.\"\"\"
{{% else %}}
def run(level, off={{{{ nothing }}}}):
    \"\"\"Compile `program` at `level` without the passes `off`; return the outputs for each feed.\"\"\"
{{% if presented %}}
    changed, off = {{{{ sees }}}}, off or ()
{{% endif %}}
{{% endif %}}
    torch._dynamo.reset()
    settings = settings_for(level, off{{{{ ", device" if placed }}}})
{{% if scalar %}}
    if level == "nopasses" or "vectorization" in off:
        settings["cpp.simdlen"] = 1
{{% endif %}}
{{% if hooked %}}
    switch_off(set(off))
{{% endif %}}
{{% if presented %}}
    if changed:
        backend = {{{{ made }}}}(level, {{{{ given.seed }}}}, {{{{ given.share }}}})
    else:
        backend = backend_for(level)
    function = program if level == "off" and not changed else compile_program(program, backend)
{{% else %}}
    function = program if level == "off" else compile_program(program, backend_for(level))
{{% endif %}}
    with torch.no_grad(), torch._inductor.config.patch(settings):
        results = [function(*arrays(feed{{{{ ", device" if placed }}}})) for feed in feeds]
    return [[seen(*from_torch(value)) for value in result] for result in results]


def arrays(feed{{{{ ", device" if placed }}}}):
    \"\"\"Return the tensors of a feed.\"\"\"
    found = [tensor(array, {{{{ 'types.get(name, "")' if types else '""' }}}}) for name, array in feed.items()]
    return {{{{ "[value.to(device) for value in found]" if placed else "found" }}}}


def seen(words, is_bfloat16):
    \"\"\"Return an output as an array; brain floats are widened.\"\"\"
    return (words.astype(np.uint32) << 16).view(np.float32) if is_bfloat16 else words
{{% if hooked %}}


def switch_off(off, checks={{}}):
    \"\"\"Switch off FX passes and patterns, which have no settings: by their observer, and by their own checks.\"\"\"
    import gc

    from torch._inductor.fx_passes import joint_graph, post_grad, pre_grad
    from torch._inductor.pattern_matcher import PatternMatcherPass
    from torch.fx.passes.graph_transform_observer import GraphTransformObserver

    GraphTransformObserver._check_disable_pass = lambda self: self.passname in off
    for module in (pre_grad, joint_graph, post_grad):
        module.lazy_init()
    for item in gc.get_objects():
        if type(item) is PatternMatcherPass:
            for entry in sum(item.patterns.values(), []):
                check = checks.setdefault(id(entry), entry.extra_check)
                entry.extra_check = (lambda match: False) if pattern_name(entry, check) in off else check


def pattern_name(entry, check):
    \"\"\"Return the name of a pattern: its handler's, or that of the function that describes it.\"\"\"
    import inspect

    if hasattr(entry, "handler"):
        return entry.handler.__name__
    name = entry.pattern_name or inspect.getclosurevars(check).nonlocals["search_fn"].__name__
    return "fuse_attention" if "sfdp_" in name else name
{{% endif %}}
"""

_RUN = PLACEMENT + PRESENTED + _PRESENTED + _LINES

_SOURCES = ("settings", "decompositions", "relations", "related", "runner")

SCRIPT = ScriptLines(
    sources=tuple(f"miscompile.targets.inductor.{name}" for name in _SOURCES),
    setup=("import os", "", 'os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"  # on a hit no pass would run', ""),
    imports=("import torch", "import torch._inductor.config"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"torch", torch.__version__',
    prelude=_PRELUDE,
    program="miscompile.targets.inductor.program:program",
)


TORCH = FrontLines(
    sources=tuple(f"miscompile.targets.inductor.{name}" for name in ("settings", "runner")),
    imports=("import torch._inductor.config",),
    run='''\
def converted(model, inputs):
    """Compile the model as a whole; return its outputs."""
    torch._dynamo.reset()
    compiled = compile_program(model, backend_for("full"))
    with torch.no_grad(), torch._inductor.config.patch(settings_for("full", ())):
        return flat(compiled(*[value.clone() for value in inputs]))
''',
    versions='"torch", torch.__version__',
)
