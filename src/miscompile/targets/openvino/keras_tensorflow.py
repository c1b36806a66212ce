"""OpenVINO's front end for TensorFlow, for models of Keras on the TensorFlow back end."""

from collections.abc import Sequence
from typing import Any

import openvino as ov

from miscompile.core.case import Program
from miscompile.targets.keras import weights
from miscompile.targets.keras.environment import load
from miscompile.targets.keras.graphs import BACKEND, INPUT, graph_of, kinds, output_name, still
from miscompile.targets.keras.layers import operator_of
from miscompile.targets.openvino.adapter import TYPES
from miscompile.targets.openvino.keras_base import OpenVinoBehind


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
        model = ov.convert_model(graph)
        model = _in_order(model)
        names = [port.get_names() for port in model.inputs]
        places = [_place(names, place) for place in range(len(program.inputs))]
        for port, place in zip(program.inputs, places, strict=True):
            kind = port.dtype if place is None else TYPES[model.inputs[place].element_type.get_type_name()]
            if kind != port.dtype:
                raise NotImplementedError(f"the front end takes {kind} in place of {port.dtype}")
        return model, places


def _place(names: Sequence[set[str]], place: int) -> int | None:
    """Return the compiler's number of the program's input `place`; unused inputs are dropped."""
    wanted = {f"{INPUT}{place}", f"{INPUT}{place}:0"}
    return next((index for index, known in enumerate(names) if wanted & known), None)


def _in_order(model: Any) -> Any:  # noqa: ANN401 - the compiler's model
    """Return the model with its outputs in the order of the graph's outputs, which the front end may change."""
    results = {name: result for result in model.get_results() for name in result.output(0).get_names()}
    wanted = [results[output_name(place)] for place in range(len(model.outputs))]
    return model if wanted == list(model.get_results()) else ov.Model(wanted, model.get_parameters())
