"""Keras in the worker, as the library that it is: layers and operations are called eagerly, on JAX."""

from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor
from miscompile.targets.keras import weights
from miscompile.targets.keras.environment import LIBRARY, load
from miscompile.targets.keras.layers import KerasOperator, operator_of, seed
from miscompile.targets.keras.values import native, tensors_of


class Keras:
    """Calls operators; there is nothing to optimise."""

    def __init__(self) -> None:
        load(LIBRARY)
        weights.install()

    def build(self, program: Program, build: Build) -> "EagerKeras":
        """Construct the operator. Raises OutsideKerasError, and what Keras raises."""
        del build
        return EagerKeras(program)

    def passes(self) -> tuple[str, ...]:
        """There are none."""
        return ()

    def fired(self, log: str) -> tuple[str, ...]:
        """Nothing fires."""
        del log
        return ()


class EagerKeras:
    """An operator that is called eagerly, each time as on the first, but for the seed: that is the number of the run.

    A layer is constructed for each run anew, since it may keep a state.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._next: KerasOperator | None = set_width(operator_of(program))
        self._runs = 0

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run once on `feed`. Raises NotImplementedError for a result that is no tensor, and what Keras raises."""
        import keras

        operator = self._next if self._next is not None else operator_of(self._program)
        self._next = operator if operator.instance.form != "module" else None
        set_width(operator)
        given = [keras.ops.convert_to_tensor(native(tensor)) for tensor in feed]
        seed(self._runs)
        self._runs += 1
        return tensors_of(operator(given))


def set_width(operator: KerasOperator) -> KerasOperator:
    """Have JAX know 64-bit types where the operator has to do with them, and else not; return the operator.

    With them, what has the default type of an integer comes in 64 bits, which is not what Keras says of it.
    """
    import jax

    jax.config.update("jax_enable_x64", operator.wide)
    return operator
