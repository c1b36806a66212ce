"""The parts of standalone scripts for Keras on JAX, in which XLA compiles the model as a whole."""

from miscompile.targets.about import FrontLines

SCRIPT = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "jax"', ""),
    imports=("import jax", "import keras"),
    run='''\
def converted(model, inputs):
    """Compile the model as a whole; return its outputs."""
    options = {"xla_allow_excess_precision": False, "xla_backend_optimization_level": 3}
    given = [keras.ops.convert_to_tensor(array) for array in inputs]
    compiled = jax.jit(lambda *values: model(list(values), training=False)).lower(*given).compile(options)
    return flat(compiled(*given))
''',
    versions='"jax", jax.__version__, "keras", keras.__version__',
)
