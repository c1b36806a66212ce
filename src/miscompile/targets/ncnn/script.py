"""The parts of standalone scripts for ncnn, besides the runner."""

from miscompile.targets.about import ScriptLines
from miscompile.targets.ncnn.about import ABOUT

SCRIPT = ScriptLines(
    sources=tuple(f"miscompile.targets.ncnn.{name}" for name in ("names", "tensors", "runner")),
    settings={"no half precision": "full_precision(net.opt)", "no Winograd": "no_winograd(net.opt)"},
    imports=("import math", "from importlib import metadata"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run='''\
def run(level, off=()):
    """Run the model with ncnn's options of `level`, without what is `off`; return the outputs for each feed."""
    ins = [given(array.shape) for array in feeds[0].values()]
    outs = program(*ins)
    net = start(*network_of(ins, outs, level == "full" and ACTIVATIONS not in off), level, off)
    return [run_arrays(net, ins, outs, list(feed.values())) for feed in feeds]
''',
    versions='"ncnn", metadata.version("ncnn")',
    program="miscompile.targets.ncnn.program:program",
)
