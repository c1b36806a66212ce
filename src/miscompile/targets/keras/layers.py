"""Construction of models of one operator from instances of Keras.

A layer is constructed once, with its weights, and called with its inputs in inference mode; an operation is called
with all its parameters. Either is called eagerly on tensors, or on symbols, which constructs a functional model.
"""

import inspect
import os
import random
import re
import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np

from miscompile.base.errors import UsageError
from miscompile.core.case import Program
from miscompile.instances.code import decoded
from miscompile.instances.instance import Instance
from miscompile.instances.program import slots
from miscompile.instances.values import Made
from miscompile.targets.keras import weights
from miscompile.targets.keras.source import is_wide
from miscompile.targets.keras.values import dtype_name, flat, found, object_of


class NotSymbolicError(Exception):
    """Keras cannot construct a model of a program, so that no compiler receives it.

    The message begins with the class of the library's own error. `known-<via>.toml` of each front end lists this class.
    """


_TRAINING = "training"
_SYMBOL = re.compile(r"\bKerasTensor\b")
_FRONT_END = "keras/src/backend/openvino/"


class KerasOperator:
    """One layer or operation with its parameters; called with the tensors of its slots, in order of their numbers.

    Keras' state of earlier programs is cleared, seeds are 0, and weights are drawn again, so that an operator is the
    same in every process. Raises OutsideKerasError, and Keras' exceptions.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.slots = slots(instance)
        self.wide = is_wide(instance)
        begin()
        self._options = dict(instance.options)
        self._called = found(instance.api)
        if instance.form == "module":
            self._called = object_of(Made(instance.api, instance.args, instance.kwargs))
            if _takes_training(self._called):
                self._options[_TRAINING] = False

    def __call__(self, tensors: Sequence[Any]) -> Any:  # noqa: ANN401 - whatever the operator returns
        """Call the operator on tensors, or on symbols."""
        args, kwargs = self.instance.inputs, self._options
        if self.instance.form != "module":
            args, kwargs = self.instance.args, dict(self.instance.kwargs)
        given = {name: object_of(value, tensors) for name, value in kwargs.items()}
        return self._called(*(object_of(value, tensors) for value in args), **given)

    def model(self) -> Any:  # noqa: ANN401 - a model of Keras
        """Return a functional model whose inputs are the slots, of fixed sizes, and whose outputs are a flat list.

        Raises NotSymbolicError when the operator has no inputs, cannot be called on symbols, or returns other
        objects than tensors. Exceptions of a compiler's back end propagate.
        """
        import keras

        if not self.slots:
            raise NotSymbolicError("a model has inputs, this program has none")
        symbols = [keras.Input(batch_shape=slot.shape, dtype=dtype_name(slot.dtype)) for slot in self.slots]
        try:
            outputs = list(flat(self(symbols)))
        except Exception as error:  # an operator may raise anything
            if _converting(error) or isinstance(error, UsageError | NotImplementedError):
                raise
            raise NotSymbolicError(f"{type(error).__name__}: {error}") from None
        if not all(isinstance(output, keras.KerasTensor) for output in outputs):
            raise NotSymbolicError("a result does not depend on the inputs")
        return keras.Model(symbols, outputs)


def operator_of(program: Program) -> KerasOperator:
    """Return the operator of a program. Raises UsageError for invalid bytes, and as `KerasOperator`."""
    return KerasOperator(decoded(program.payload))


def begin() -> None:
    """Clear the state of earlier programs, and reset seeds and weights for this one."""
    import keras

    keras.utils.clear_session(free_memory=False)
    keras.config.disable_traceback_filtering()  # that setting was cleared as well
    seed(0)
    weights.begin()


def seed(number: int) -> None:
    """Seed Python's generator, from which Keras draws its default seeds."""
    random.seed(number)
    np.random.seed(number)


def _takes_training(layer: Any) -> bool:  # noqa: ANN401 - a layer of Keras
    return _TRAINING in inspect.signature(layer.call).parameters


def _converting(error: BaseException) -> bool:
    """Tell whether an error comes from a back end that is a compiler's front end, and that received tensors.

    Some functions of Keras pass their symbols to every back end.
    """
    if _SYMBOL.search(str(error)):
        return False
    frames = (frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(_FRONT_END in file.replace(os.sep, "/") for file in frames)
