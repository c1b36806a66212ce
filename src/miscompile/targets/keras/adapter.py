"""Keras in the worker as the reference: layers and operations are called eagerly, on JAX."""

from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor
from miscompile.targets.keras import weights
from miscompile.targets.keras.environment import LIBRARY, load
from miscompile.targets.keras.layers import KerasOperator, operator_of, seed
from miscompile.targets.keras.values import native, tensors_of


class Keras:
    """Calls operators without optimisation."""

    def __init__(self) -> None:
        load(LIBRARY)
        weights.install()

    def build(self, program: Program, build: Build) -> "EagerKeras":
        """Construct the operator. Raises OutsideKerasError, and Keras' exceptions."""
        del build
        return EagerKeras(program)

    def fired(self, log: str) -> tuple[str, ...]:
        """Nothing fires."""
        del log
        return ()


class EagerKeras:
    """An operator that is called eagerly; runs differ only in the seed, which is the number of the run.

    A layer is constructed again for each run, because it may have state.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._next: KerasOperator | None = set_width(operator_of(program))
        self._runs = 0

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run once on `feed`. Raises NotImplementedError for a result that is not a tensor, and Keras' exceptions."""
        import keras

        operator = self._next if self._next is not None else operator_of(self._program)
        self._next = operator if operator.instance.form != "module" else None
        set_width(operator)
        given = [keras.ops.convert_to_tensor(native(tensor)) for tensor in feed]
        seed(self._runs)
        self._runs += 1
        return tensors_of(operator(given))


def set_width(operator: KerasOperator) -> KerasOperator:
    """Enable JAX's 64-bit types only if the operator uses them; return the operator.

    With 64-bit types enabled, results of the default integer type have 64 bits, which differs from Keras'
    documentation.
    """
    import jax

    jax.config.update("jax_enable_x64", operator.wide)
    return operator
