"""The parts of standalone scripts for tract, besides the runner."""

from miscompile.targets.about import ScriptLines

_RUN = '''\
def run(level, off=()):
    """Read and optimise the model; return the outputs for each feed."""
    names, runnable = optimised(model.SerializeToString())
    return [evaluate(names, runnable, feed) for feed in feeds]
'''

SCRIPT = ScriptLines(
    sources=("miscompile.targets.tract.runner",),
    setup=("import os", "", 'os.environ.update(RUST_BACKTRACE="0", RUST_LIB_BACKTRACE="0")', ""),
    levels={"off": '"off"', "full": '"full"'},
    run=_RUN,
    versions='"tract", tract.version()',
)
