"""Programs of Keras on the TensorFlow back end as TensorFlow graphs, which two compilers' front ends convert."""

from collections.abc import Mapping
from typing import Any

from miscompile.instances.values import Slot
from miscompile.targets.keras.layers import KerasOperator, NotSymbolicError
from miscompile.targets.keras.values import dtype_name, flat

BACKEND = "tensorflow"
INPUT = "x"
OUTPUT = "y"
"""The prefixes of the names of a graph's inputs and outputs, which are followed by their numbers."""

SILENT = frozenset(
    {
        "Placeholder",
        "Const",
        "Identity",
        "NoOp",
        "ReadVariableOp",
        "IdentityN",
        "VarHandleOp",
        "StatefulPartitionedCall",
    }
)
"""Types of nodes that are not operators."""


def still() -> None:
    """Configure TensorFlow for one thread, without oneDNN's selection of kernels."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def graph_of(operator: KerasOperator, model: Any) -> Any:  # noqa: ANN401 - a concrete function of TensorFlow
    """Return the model of an operator as a concrete function of inputs of fixed sizes.

    Its outputs have names, because without names OpenVINO treats the ends of all loops as outputs. Raises
    NotSymbolicError when TensorFlow cannot trace it, so that no compiler receives it.
    """
    import tensorflow as tf

    if not operator.slots:
        raise NotSymbolicError("a model has inputs, this program has none")

    def call(*values: Any) -> Mapping[str, Any]:  # noqa: ANN401 - tensors of TensorFlow
        outputs = flat(model(list(values), training=False))
        return {output_name(place): value for place, value in enumerate(outputs)}

    try:
        return tf.function(call, autograph=False).get_concrete_function(*[_spec(slot) for slot in operator.slots])
    except Exception as error:  # noqa: BLE001 - tracing raises whatever the operator raises
        raise NotSymbolicError(f"{type(error).__name__}: {error}") from None


def output_name(place: int) -> str:
    """Return the name of output number `place`; TensorFlow sorts them."""
    return f"{OUTPUT}{place:03d}"


def _spec(slot: Slot) -> Any:  # noqa: ANN401 - of TensorFlow
    import tensorflow as tf

    return tf.TensorSpec(slot.shape, dtype_name(slot.dtype), name=f"{INPUT}{slot.index}")


def kinds(graph: Any) -> tuple[str, ...]:  # noqa: ANN401 - a concrete function of TensorFlow
    """Return the types of a graph's nodes and then those of the functions that it calls, each once."""
    definition = graph.graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    return tuple(kind for kind in dict.fromkeys(node.op for node in nodes) if kind not in SILENT)
