"""The parts of standalone scripts for MNN, besides the runner."""

from miscompile.targets.about import ScriptLines

_RUN = '''\
def run(level, off=()):
    """Convert at `level` and load; return the outputs for each feed."""
    loaded = Mnn(model.SerializeToString(), level)
    return [evaluate(loaded, feed) for feed in feeds]
'''

SCRIPT = ScriptLines(
    sources=("miscompile.targets.mnn.runner",),
    settings={
        "converter option useGeluApproximation": 'options += ["--useGeluApproximation", "0"]',
        "converter option alignDenormalizedValue": 'options += ["--alignDenormalizedValue", "0"]',
    },
    imports=("from importlib import metadata",),
    levels={"off": '"off"', "full": '"full"'},
    run=_RUN,
    versions='"MNN", metadata.version("MNN")',
)
