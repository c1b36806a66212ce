"""OpenVINO's front end for TensorFlow, for models of Keras on the TensorFlow back end."""

from collections.abc import Sequence
from typing import Any

from miscompile.core.case import Program
from miscompile.targets.keras import weights
from miscompile.targets.keras.environment import load
from miscompile.targets.keras.graphs import BACKEND, graph_of, kinds, still
from miscompile.targets.keras.layers import operator_of
from miscompile.targets.openvino.adapter import TYPES
from miscompile.targets.openvino.keras_base import OpenVinoBehind
from miscompile.targets.openvino.keras_runner import convert_graph, named_places


class OpenVinoTensorFlow(OpenVinoBehind):
    """Converts the graph of a model of Keras. The conversions are named by types of nodes, because each type has a
    translator."""

    def __init__(self) -> None:
        load(BACKEND)
        still()
        weights.install()
        super().__init__()

    def converted(self, program: Program, observe: bool) -> tuple[Any, Sequence[int | None]]:
        """Trace the model and convert its graph. Raises NotImplementedError if the front end changes an element
        type."""
        operator = operator_of(program)
        graph = graph_of(operator, operator.model())
        if observe:
            self._functions = kinds(graph)
        model = convert_graph(graph)
        places = named_places(len(program.inputs), model)
        for port, place in zip(program.inputs, places, strict=True):
            kind = port.dtype if place is None else TYPES[model.inputs[place].element_type.get_type_name()]
            if kind != port.dtype:
                raise NotImplementedError(f"the front end takes {kind} in place of {port.dtype}")
        return model, places
