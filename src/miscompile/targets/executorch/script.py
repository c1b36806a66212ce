"""The parts of standalone scripts for ExecuTorch, besides the runners."""

from miscompile.targets.about import ScriptLines
from miscompile.targets.executorch.about import ABOUT

SCRIPT = ScriptLines(
    sources=tuple(f"miscompile.targets.{name}" for name in ("torch.runner", "executorch.names", "executorch.runner")),
    imports=("import torch", "from importlib import metadata"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run='''\
def run(level, off=()):
    """Run in torch, or lower at `level` without what is `off`; return the outputs for each feed."""
    if level == "off":
        with torch.no_grad():
            return [[words_of(value)[0] for value in program(*tensors(feed))] for feed in feeds]
    given = tuple([torch.zeros_like(value) for value in tensors(feeds[0])])
    loaded = Loaded(lowered_bytes(export_module(FunctionModule(program).eval(), given), level, off))
    return [[words_of(value)[0] for value in loaded.run(tensors(feed))] for feed in feeds]


def tensors(feed):
    """Return the tensors of a feed."""
    return [tensor(array, {{ 'types.get(name, "")' if types else '""' }}) for name, array in feed.items()]
''',
    versions='"executorch", metadata.version("executorch"), "torch", torch.__version__',
    prelude="configure()\n",
    program="miscompile.targets.lowering.torch_program:program",
    calls=True,
)
