"""The lines that a reproducer for the reference implementation consists of."""

from miscompile.targets.about import ScriptLines

_RUN = '''\
def run(level, off=()):
    """Interpret the model; return the outputs for each feed."""
    evaluator = ReferenceEvaluator(model)
    return [evaluator.run(None, feed) for feed in feeds]
'''

SCRIPT = ScriptLines(
    imports=("from onnx.reference import ReferenceEvaluator",),
    levels={"off": '"off"', "full": '"full"'},
    run=_RUN,
    versions='"onnx\'s reference implementation"',
)
