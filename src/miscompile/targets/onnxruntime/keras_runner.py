"""Keras' export to ONNX; the worker calls this function, and standalone scripts contain it. Keras is imported inside
the function, after the process has chosen its back end."""

from typing import Any


def export_model(model: Any, path: str) -> bytes:  # noqa: ANN401 - a model of Keras
    """Return a model that Keras has exported to the file `path`.

    The export is given the inputs' shapes, because by default it leaves the first size unknown.
    """
    import keras

    specs = [keras.InputSpec(shape=one.shape, dtype=one.dtype, name=one.name) for one in model.inputs]
    model.export(path, format="onnx", verbose=False, input_signature=[specs])
    with open(path, "rb") as file:
        return file.read()
