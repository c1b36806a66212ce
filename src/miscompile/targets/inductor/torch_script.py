"""The parts of standalone scripts for programs of torch compiled by `torch.compile`."""

from miscompile.targets.about import FrontLines
from miscompile.targets.inductor.script import SOURCES

TORCH = FrontLines(
    sources=SOURCES,
    imports=("import torch._inductor.config",),
    run='''\
def converted(model, inputs):
    """Compile the model as a whole; return its outputs."""
    configure()
    torch._dynamo.reset()
    compiled = compile_program(model, backend_for("full"))
    with torch.no_grad(), torch._inductor.config.patch(settings_for("full", ())):
        return flat(compiled(*[value.clone() for value in inputs]))
''',
    versions='"torch", torch.__version__',
)
