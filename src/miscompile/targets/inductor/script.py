"""The lines that a reproducer for Inductor consists of, beside what all scripts have in common."""

import re

from miscompile.targets.about import ScriptLines
from miscompile.targets.inductor.about import ABOUT
from miscompile.targets.inductor.switches import LEVELS, SETTINGS
from miscompile.targets.placement import PLACEMENT
from miscompile.targets.presentations import PRESENTED, source_of

_LEVELS = {name: dict(found) for name, found in LEVELS.items()}
_LEVELS["nopasses"]["cpp.simdlen"] = 1
_SETTINGS = {**SETTINGS, "vectorization": {"cpp.simdlen": 1}}

_PRESENTED = """\
{% set presented = presented if presented in ("decomposed", "related") else "" %}
{% set nothing = "None" if presented and not alike else nothing %}
"""


def _source(*files: str) -> str:
    """Return what stands in files beside this one, without the import of torch, which a script has anyway."""
    text = "\n\n\n".join(source_of(f"inductor/{file}").replace("import torch\n", "") for file in files)
    return re.sub(r"\n{4,}", "\n\n\n", text)


_OWN = f"""\
{{% if presented == "decomposed" %}}
import functools

from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.compile_fx import compile_fx

{{% raw %}}
{_source("decompositions.py")}
{{%- endraw %}}



{{% elif presented == "related" %}}
{{% raw %}}
{_source("related.py", "relations.py")}
{{%- endraw %}}



{{% endif %}}
"""

_PRELUDE = (
    PLACEMENT
    + PRESENTED
    + _PRESENTED
    + _OWN
    + '''\
def tensor(array, dtype):
    """Return an array as a tensor; brain floats come as 16-bit words."""
    array = np.array(array)
    if dtype == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
'''
)


def _entries(values: dict[str, dict[str, object]]) -> str:
    """Return the entries of a dict as template text; only those that the script needs are rendered."""
    return "\n".join(
        f'{{% if "{name}" in used %}}\n{_entry(name, found)}\n{{% endif %}}' for name, found in values.items()
    )


def _entry(name: str, settings: dict[str, object]) -> str:
    """Return one entry, over several lines if it is long."""
    words = [f"{key!r}: {value!r}".replace("'", '"') for key, value in settings.items()]
    if len(words) < 3:
        return f'    "{name}": {{{", ".join(words)}}},'
    return f'    "{name}": {{\n' + "".join(f"        {word},\n" for word in words) + "    },"


_LINES = f"""\
{{% set used = [faulty.level] + ([reference.level] if reference is not none else []) %}}
# Settings of Inductor; the levels off and aot have none, because they do without its code generator.
LEVELS = {{
{_entries(_LEVELS)}
}}
{{% set off = (faulty.disabled | sort | list) + (culprits | list) %}}
{{% set used = off %}}
{{% set hooked = off | reject("in", {sorted(_SETTINGS)!r}) | list %}}
{{% if off %}}
# Settings that switch passes off.
SETTINGS = {{
{_entries(_SETTINGS)}
}}
{{% endif %}}


{{% if placed %}}
def run(level, off={{{{ nothing }}}}):
    \"\"\"Do what `run_here` does, on the device of this call, with the constants of `program` there as well.\"\"\"
    device = {{{{ where }}}}
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    for name, value in list(globals().items()):
        if isinstance(value, torch.Tensor):
            globals()[name] = value.to(device)
    with torch.device(device):
{{% if presented %}}
        return run_here(level, off or (), device, {{{{ sees }}}})
{{% else %}}
        return run_here(level, off or (), device)
{{% endif %}}


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
    settings = dict(LEVELS.get(level, {{}}))
{{% if off %}}
    for name in off:
        settings.update(SETTINGS.get(name, {{}}))
{{% if hooked %}}
    switch_off(set(off))
{{% endif %}}
{{% endif %}}
    backend = "aot_eager_decomp_partition" if level == "aot" else "inductor"
{{% if presented == "decomposed" %}}
    if changed:  # take operators apart by another table of decompositions
        table = chosen_decompositions({{{{ given.seed }}}}, {{{{ given.share }}}})
        apart = aot_autograd(fw_compiler=run_eagerly, bw_compiler=run_eagerly, decompositions=table)
        backend = apart if level in ("off", "aot") else functools.partial(compile_fx, decompositions=table)
{{% elif presented %}}
    if changed:  # call related operators instead
        backend = functools.partial(compile_related, level)
{{% endif %}}
{{% if presented %}}
    plain = level == "off" and not changed
    function = program if plain else torch.compile(program, backend=backend, fullgraph=True, dynamic=False)
{{% else %}}
    function = program if level == "off" else torch.compile(program, backend=backend, fullgraph=True, dynamic=False)
{{% endif %}}
    with torch.no_grad(), torch._inductor.config.patch(settings):
{{% if placed %}}
        results = [function(*[to_torch(*item).to(device) for item in feed.items()]) for feed in feeds]
{{% else %}}
        results = [function(*[to_torch(name, array) for name, array in feed.items()]) for feed in feeds]
{{% endif %}}
    return [[to_numpy(value) for value in result] for result in results]


{{% if presented == "decomposed" %}}
def run_eagerly(graph, inputs):
    \"\"\"Run a graph as it is, each operator by its own kernel.\"\"\"
    return make_boxed_func(graph.forward)


os.environ.pop("CI", None)  # under which no kernel is called for an operator that could be decomposed


{{% elif presented %}}
def compile_related(level, graph, inputs):
    \"\"\"Compile a graph with related operators in it; at level off, return it as it is.\"\"\"
    graph = with_related(graph, {{{{ given.seed }}}}, {{{{ given.share }}}})
    if level == "off":
        return graph.forward
    name = "aot_eager_decomp_partition" if level == "aot" else "inductor"
    return torch._dynamo.lookup_backend(name)(graph, inputs)


{{% endif %}}
def to_torch(name, array):
    \"\"\"Return an input as a tensor.\"\"\"
    return tensor(array, {{{{ 'types.get(name, str(array.dtype))' if types else 'str(array.dtype)' }}}})


def to_numpy(value):
    \"\"\"Return an output as an array{{{{ "; brain floats are widened" if exotic }}}}.\"\"\"
{{% if exotic %}}
    value = value.float() if value.dtype == torch.bfloat16 else value
{{% endif %}}
    return value{{{{ ".cpu()" if placed }}}}.numpy()
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

SCRIPT = ScriptLines(
    setup=("import os", "", 'os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"  # on a hit no pass would run', ""),
    imports=("import torch", "import torch._inductor.config"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"torch", torch.__version__',
    prelude=_PRELUDE,
    program="miscompile.targets.inductor.program:program",
)
