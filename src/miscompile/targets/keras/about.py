"""The description of Keras as a library, which does not import it."""

from miscompile.targets.about import About

ABOUT = About(
    name="keras",
    title="Keras (eager, on JAX)",
    role="library",
    kinds=("keras",),
    levels=("off", "full"),
    adapter="miscompile.targets.keras.adapter:Keras",
    script="",
    distributions=("keras", "jax", "jaxlib"),
    max_opset=0,
    max_ir_version=0,
    extra="keras",
    prepare="miscompile.targets.keras.environment:prepare",
    switches="layers and operations are called one by one: there are no passes, and both levels are the same",
)
