"""The parts of standalone scripts for PyTorch's exporters, besides the runners."""

from miscompile.targets.about import FrontLines, ScriptLines
from miscompile.targets.torch_onnx.about import ABOUT
from miscompile.targets.torch_onnx.names import PASSES, RULES, TRACED

_SWITCHED = f"""\
{{% set builds = [faulty, reference] if reference is not none else [faulty] %}}
{{% set off = builds | map(attribute="disabled") | map("list") | sum(start=culprits | list) %}}
{{% set rules = off | select("in", {sorted(RULES)!r}) | list %}}
{{% set passes = off | select("in", {sorted(PASSES)!r}) | list %}}
{{% set traced = off | select("in", {sorted(TRACED)!r}) | list %}}
"""

_PRELUDE = (
    _SWITCHED
    + """\
configure()
{% if rules %}
switch_rules()
{% endif %}
{% if passes %}
switch_passes()
{% endif %}
{% if traced %}
switch_traced()
{% endif %}
"""
)

_RUN = (
    _SWITCHED
    + '''\
def run(level, off=()):
    """Run in torch, or export at `level` without the steps `off`; return the outputs for each feed."""
{% if rules or passes or traced %}
    switch_off(off)
{% endif %}
    if level == "off":
        with torch.no_grad():
            return [[words_of(value)[0] for value in program(*tensors(feed))] for feed in feeds]
    given = tuple([torch.zeros_like(value) for value in tensors(feeds[0])])
{% if options.get("exporter") == "torchscript" %}
    made = export_traced(FunctionModule(program), given, OPTIMIZED[level])
{% else %}
    made = export_program(export_module(FunctionModule(program), given), len(given), OPTIMIZED[level])
{% endif %}
    session = {{ "start_reference" if options.get("runtime") == "reference" else "start_runtime" }}(made)
    return [run_model(session, inputs_of(made), list(feed.values())) for feed in feeds]


def tensors(feed):
    """Return the tensors of a feed."""
    return [tensor(array, "") for array in feed.values()]
'''
)

SOURCES = tuple(
    f"miscompile.targets.{name}"
    for name in (
        "torch.runner",
        "torch.onnx_runner",
        "torch_onnx.names",
        "torch_onnx.switch_runner",
        "torch_onnx.runner",
    )
)
"""The modules whose functions scripts may contain."""

SCRIPT = ScriptLines(
    sources=SOURCES,
    imports=("import torch", "import onnxruntime as ort"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"torch", torch.__version__, "onnxscript", __import__("onnxscript").__version__, "onnxruntime", '
    "ort.__version__",
    prelude=_PRELUDE,
    program="miscompile.targets.lowering.torch_program:program",
    calls=True,
)

TORCH = FrontLines(
    sources=SOURCES,
    imports=("import onnxruntime as ort",),
    run='''\
def converted(model, inputs):
    """Export the model to ONNX, run it as it is; return its outputs."""
    configure()
    graph = export_module(model, tuple(inputs))
    payload, complexes = export_program(graph, len(inputs)), complex_outputs(graph)
    given = [to_pairs(words_of(value)[0]) for value in inputs]
    return restored(run_model(start_runtime(payload), inputs_of(payload), given), complexes)
''',
    versions='"torch", torch.__version__, "onnxruntime", ort.__version__, "onnxscript", '
    '__import__("onnxscript").__version__',
)
