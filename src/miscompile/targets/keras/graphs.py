"""Programs of Keras on the TensorFlow back end as TensorFlow graphs, which two compilers' front ends convert."""

from typing import Any

from miscompile.targets.keras.errors import NotSymbolicError
from miscompile.targets.keras.layers import KerasOperator
from miscompile.targets.keras.runner import concrete_function
from miscompile.targets.keras.values import dense, dtype_name

BACKEND = "tensorflow"

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

    Raises NotSymbolicError when TensorFlow cannot trace it, so that no compiler receives it.
    """
    if not operator.slots:
        raise NotSymbolicError("a model has inputs, this program has none")
    try:
        return concrete_function(dense(model), [(slot.shape, dtype_name(slot.dtype)) for slot in operator.slots])
    except Exception as error:  # noqa: BLE001 - tracing raises whatever the operator raises
        raise NotSymbolicError(f"{type(error).__name__}: {error}") from None


def kinds(graph: Any) -> tuple[str, ...]:  # noqa: ANN401 - a concrete function of TensorFlow
    """Return the types of a graph's nodes and then those of the functions that it calls, each once."""
    definition = graph.graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    return tuple(kind for kind in dict.fromkeys(node.op for node in nodes) if kind not in SILENT)
