"""The parts of standalone scripts for the toy, besides the parts common to all scripts.

Unlike the scripts of other targets, they import this package, because it contains the compiler.
"""

from miscompile.targets.about import ScriptLines

_RUN = '''\
{% set transform = faulty.transform %}
{% set other = reference.transform if reference is not none else none %}
{% set guards = transform and transform.name == "guarded" %}
{% set alike = not guards or transform == other or reference is none %}
{% set usual = 'parse_spec("%s")' % other if other else "None" %}
BUGS = {{ options.get("bugs", "none") | literal }}
{% if "optimiser" in options %}
OPTIMISER = {{ options["optimiser"] | literal }}
{% endif %}
{% set chosen = ", optimiser=OPTIMISER" if "optimiser" in options else "" %}


def run(level, off={{ "()" if alike else "None" }}):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    program = Program("onnx", model.SerializeToString(), (), ())
{% if guards %}
    way = parse_spec("{{ transform }}"){{ "" if alike else " if off is not None else %s" % usual }}
    session = ToyAdapter(bugs=BUGS{{ chosen }}).build(program, Build(level, frozenset(off or ()), transform=way))
{% else %}
    session = ToyAdapter(bugs=BUGS{{ chosen }}).build(program, Build(level, frozenset(off)))
{% endif %}
    names = [value.name for value in model.graph.input]
    results = [session.run(tuple(tensor(np.asarray(feed[name])) for name in names if name in feed)) for feed in feeds]
    return [[None if output is None else output.array for output in result] for result in results]
'''

SCRIPT = ScriptLines(
    imports=(
        "from miscompile.base.specs import parse_spec",
        "from miscompile.core.case import Program",
        "from miscompile.core.run import Build",
        "from miscompile.core.tensor import tensor",
        "from miscompile.targets.toy.adapter import ToyAdapter",
    ),
    levels={"off": '"off"', "basic": '"basic"', "full": '"full"'},
    run=_RUN,
    versions='"miscompile\'s toy compiler"',
)
