"""The parts of standalone scripts for the toy, besides the parts common to all scripts.

Unlike the scripts of other targets, they import this package, because it contains the compiler.
"""

from miscompile.targets.about import ScriptLines

_RUN = '''\
BUGS = {{ options.get("bugs", "none") | literal }}
{%- if "optimiser" in options %}
OPTIMISER = {{ options["optimiser"] | literal }}
{%- endif %}
{%- set chosen = ", optimiser=OPTIMISER" if "optimiser" in options else "" %}


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    program = Program("onnx", model.SerializeToString(), (), ())
    session = ToyAdapter(bugs=BUGS{{ chosen }}).build(program, Build(level, frozenset(off)))
    names = [value.name for value in model.graph.input]
    results = [session.run(tuple(tensor(np.asarray(feed[name])) for name in names if name in feed)) for feed in feeds]
    return [[None if output is None else output.array for output in result] for result in results]
'''

SCRIPT = ScriptLines(
    imports=(
        "from miscompile.core.case import Program",
        "from miscompile.core.run import Build",
        "from miscompile.core.tensor import tensor",
        "from miscompile.targets.toy.adapter import ToyAdapter",
    ),
    levels={"off": '"off"', "basic": '"basic"', "full": '"full"'},
    run=_RUN,
    versions='"miscompile\'s toy compiler"',
)
