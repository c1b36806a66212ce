"""The tensors of an operator's result, and a model's graph in TensorFlow; workers call these functions, and standalone
scripts contain those that they need.

Keras and TensorFlow are imported inside functions, after the process has chosen the back end of Keras.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

INPUT = "x"
OUTPUT = "y"
"""The prefixes of the names of a graph's inputs and outputs, which are followed by their numbers."""


def tensors_in(outputs: Any) -> Iterator[Any]:  # noqa: ANN401 - whatever an operator returned
    """Yield the parts of an operator's result that are no containers, in order."""
    if isinstance(outputs, dict):
        outputs = list(outputs.values())
    if isinstance(outputs, (tuple, list)):
        for item in outputs:
            yield from tensors_in(item)
    else:
        yield outputs


def concrete_function(model: Callable[..., Any], inputs: Sequence[tuple[Sequence[int], str]]) -> Any:  # noqa: ANN401
    """Return a model as a concrete function of TensorFlow; `inputs` are the shapes and types of its inputs.

    Its outputs have names, because without names OpenVINO treats the ends of all loops as outputs. Raises whatever
    tracing raises.
    """
    import tensorflow as tf

    def call(*values: Any) -> dict[str, Any]:  # noqa: ANN401 - tensors of TensorFlow
        outputs = tensors_in(model(list(values), training=False))
        return {output_name(place): value for place, value in enumerate(outputs)}

    specs = [tf.TensorSpec(shape, dtype, name=f"{INPUT}{place}") for place, (shape, dtype) in enumerate(inputs)]
    return tf.function(call, autograph=False).get_concrete_function(*specs)


def output_name(place: int) -> str:
    """Return the name of output number `place`; TensorFlow sorts them."""
    return f"{OUTPUT}{place:03d}"
