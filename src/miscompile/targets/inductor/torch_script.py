"""The lines that a script of a program of torch behind `torch.compile` consists of."""

from miscompile.targets.about import FrontLines

TORCH = FrontLines(
    imports=(),
    run='''\
def converted(model, inputs):
    """Compile the model as a whole; return its outputs."""
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=False)
    with torch.no_grad():
        return flat(compiled(*[value.clone() for value in inputs]))
''',
    versions='"torch", torch.__version__',
)
