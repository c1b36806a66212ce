"""OpenVINO's models of Keras' models; workers call these functions, and standalone scripts contain those that they
need. Keras is imported inside functions, after the process has chosen its back end."""

from collections.abc import Callable, Sequence
from typing import Any

from openvino import opset16

from miscompile.targets.keras.runner import INPUT, output_name, tensors_in
from miscompile.targets.openvino.interface import ov


def built_by_keras(model: Callable[..., Any], parameters: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return the model that Keras' own back end builds when `model` is called on parameters, as in `predict`."""
    from keras.src.backend.openvino.core import OpenVINOKerasTensor, get_ov_output

    outputs = list(tensors_in(model([OpenVINOKerasTensor(parameter.output(0)) for parameter in parameters])))
    return ov.Model(results=[opset16.result(get_ov_output(output)) for output in outputs], parameters=parameters)


def convert_graph(graph: Any) -> Any:  # noqa: ANN401 - a concrete function of TensorFlow, an extension type
    """Convert a graph, and put the outputs in its order, which the front end may change."""
    model = ov.convert_model(graph)
    results = {name: result for result in model.get_results() for name in result.output(0).get_names()}
    wanted = [results[output_name(place)] for place in range(len(model.outputs))]
    return model if wanted == list(model.get_results()) else ov.Model(wanted, model.get_parameters())


def named_places(count: int, read: Any) -> list[int | None]:  # noqa: ANN401 - an extension type
    """Return for each of a graph's inputs its number in the compiler's model; None for a dropped one."""
    names = [port.get_names() for port in read.inputs]
    wanted = [{f"{INPUT}{place}", f"{INPUT}{place}:0"} for place in range(count)]
    return [next((index for index, known in enumerate(names) if one & known), None) for one in wanted]
