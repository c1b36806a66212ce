"""The parts of standalone scripts for LiteRT, besides the runner."""

from miscompile.targets.about import ScriptLines
from miscompile.targets.litert.about import ABOUT

SCRIPT = ScriptLines(
    sources=tuple(f"miscompile.targets.litert.{name}" for name in ("names", "tensors", "runner")),
    imports=("import math", "from importlib import metadata"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run='''\
def run(level, off=()):
    """Run the model with the kernels of `level`, without what is `off`; return the outputs for each feed."""
    session = start(write_model(), level, off)
    return [[value.copy() for value in run_arrays(session, list(feed.values()))] for feed in feeds]


def write_model():
    """Return the model in LiteRT's format."""
    given = [LiteValue(array.shape, array.dtype.name) for array in feeds[0].values()]
    return model_of(given, program(*given))
''',
    versions='"ai-edge-litert", metadata.version("ai-edge-litert")',
    program="miscompile.targets.litert.program:program",
)
