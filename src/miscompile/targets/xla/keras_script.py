"""The parts of standalone scripts for Keras on JAX, in which XLA compiles the model as a whole."""

from miscompile.targets.about import FrontLines
from miscompile.targets.xla.script import SETUP

SCRIPT = FrontLines(
    setup=(*SETUP[:-1], 'os.environ["KERAS_BACKEND"] = "jax"', ""),
    sources=("miscompile.targets.keras.runner", "miscompile.targets.xla.keras_runner", "miscompile.targets.xla.runner"),
    imports=("import jax", "import keras"),
    run='''\
def converted(model, inputs):
    """Compile the model as a whole; return its outputs."""
    given = [tensor(array, "") for array in inputs]
    compiled = compile_function(function_of(model), given, "full", (), {})
    return flat(compiled(*given))
''',
    versions='"jax", jax.__version__, "keras", keras.__version__',
)
